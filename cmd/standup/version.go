package main

import (
	"fmt"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

// version is the module's version as the Go tool stamped it into the binary.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

func (a *app) versionCommand() *cli.Command {
	return &cli.Command{
		Name:   "version",
		Usage:  "print the version",
		Flags:  commonFlags(),
		Action: func(*cli.Context) error { return a.printVersion() },
	}
}

func (a *app) printVersion() error {
	_, err := fmt.Fprintln(a.stdout, version())
	return err
}

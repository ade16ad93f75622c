package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"
	"go.uber.org/zap"
	"golang.org/x/term"
)

// app holds the streams of one run. Commands write results to stdout and everything else to stderr.
type app struct {
	stdout, stderr io.Writer
	// terminal says that stderr is one: only then are colours and animation allowed.
	terminal bool
	log      *zap.Logger
	args     []string
}

func newApp(stdout, stderr io.Writer) *app {
	a := &app{stdout: stdout, stderr: stderr, log: zap.NewNop()}
	if f, ok := stderr.(*os.File); ok {
		a.terminal = term.IsTerminal(int(f.Fd()))
	}
	return a
}

// run parses the arguments, runs the command, prints its error if it has one and returns the exit
// code. It is the one place where an exit code is decided.
func (a *app) run(ctx context.Context, args []string) int {
	a.args = args
	err := a.cli().RunContext(ctx, args)
	// A context that was cancelled by a signal wins over whatever error that led to.
	if ctx.Err() != nil && err != nil {
		if errors.Is(err, context.Canceled) {
			err = errors.New("interrupted; nothing was rolled back, and the next run goes on from here")
		}
		a.printError(err)
		return exitInterrupted
	}
	if err != nil {
		a.printError(err)
	}
	return exitCode(err)
}

func (a *app) cli() *cli.App {
	app := &cli.App{
		Name:                 "standup",
		Usage:                "bring a Flux-managed cluster up from cold, in the order its own git says",
		UsageText:            "standup <command> [flags]",
		Description:          appDescription,
		Version:              version(),
		HideVersion:          true,
		HideHelpCommand:      true,
		EnableBashCompletion: true,
		Suggest:              true,
		Writer:               a.stdout,
		ErrWriter:            a.stderr,
		ExitErrHandler:       func(*cli.Context, error) {},
		OnUsageError:         usageError("standup", nil),
		Action:               a.rootAction,
		Flags:                []cli.Flag{&cli.BoolFlag{Name: flagVersion, Hidden: true}},
		Commands:             a.commands(),
	}
	for _, c := range app.Commands {
		a.prepare(c, "standup "+c.Name)
	}
	return app
}

const appDescription = `In a pull request, without a cluster:
   standup tiers                     the order that git gives, as waves
   standup audit                     can the cluster come up from cold?
   standup diff --from main          what would this change move, delete or reorder?

In a disaster, from the recovery runbook:
   standup up                        preflight, free what is stuck, resume, wait
   standup status                    what is not ready, and the first cause of it`

func (a *app) commands() []*cli.Command {
	return []*cli.Command{
		a.tiersCommand(),
		a.auditCommand(),
		a.diffCommand(),
		a.statusCommand(),
		a.upCommand(),
		a.crdsCommand(),
		a.resumeCommand(),
		a.waitCommand(),
		a.suspendCommand(),
		a.runbookCommand(),
		a.completionCommand(),
		a.versionCommand(),
	}
}

// prepare gives a command, which is typed as name says, what all commands have: errors returned, not
// printed twice; no positional arguments; a logger.
func (a *app) prepare(c *cli.Command, name string) {
	c.OnUsageError = usageError(name, c.Flags)
	c.HideHelpCommand = true
	for _, sub := range c.Subcommands {
		a.prepare(sub, name+" "+sub.Name)
	}
	action := c.Action
	if action == nil {
		return
	}
	c.Action = func(ctx *cli.Context) error {
		err := a.act(ctx, name, action)
		if e, ok := errors.AsType[*UsageError](err); ok && e.Help == "" {
			e.Help = name
		}
		return err
	}
}

// act runs a command's action, after what is the same for all of them.
func (a *app) act(c *cli.Context, name string, action cli.ActionFunc) error {
	if c.Args().Present() {
		return tooManyArguments(c, name)
	}
	if err := repeated(c, a.args); err != nil {
		return err
	}
	log, err := newLogger(a.stderr, c.String(flagLogLevel), c.String(flagLogEncoding))
	if err != nil {
		return err
	}
	a.log = log
	return action(c)
}

func (a *app) rootAction(c *cli.Context) error {
	if c.Bool(flagVersion) {
		return a.printVersion()
	}
	name := c.Args().First()
	switch command := c.Args().Get(1); {
	case name == "help" && c.App.Command(command) != nil:
		return cli.ShowCommandHelp(c, command)
	case name != "" && name != "help":
		return &UsageError{Message: fmt.Sprintf("there is no command %q%s", name, didYouMean(name, commandNames(c.App.Commands))), Help: "standup"}
	}
	return cli.ShowAppHelp(c)
}

// progress prints one line of what is going on, unless --quiet.
func (a *app) progress(c *cli.Context, format string, args ...any) {
	if !c.Bool(flagQuiet) {
		fmt.Fprintf(a.stderr, format+"\n", args...)
	}
}

func (a *app) printError(err error) {
	if errors.Is(err, errSilent) {
		return
	}
	fmt.Fprintf(a.stderr, "standup: %v\n", err)
	if h := hint(err); h != "" {
		fmt.Fprintf(a.stderr, "hint: %s\n", h)
	}
}

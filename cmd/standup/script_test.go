package main

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/standup-sh/standup/test/homenetwork"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"standup": func() { os.Exit(run(os.Args)) },
	})
}

var update = flag.Bool("update", false, "rewrite the golden parts of the scripts")

// TestScripts runs the real command, in a repository that holds the home network, and checks both
// streams and the exit code. No cluster is at hand: those cases are in test/e2e.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           filepath.Join("testdata", "script"),
		UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			for dir, state := range map[string]homenetwork.State{"home": homenetwork.Repaired, "wedged": homenetwork.Wedged} {
				if err := homenetwork.Write(filepath.Join(env.WorkDir, dir), state); err != nil {
					return err
				}
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exitcode": exitCodeOf,
			"hush":     hushed,
		},
	})
}

// exitCodeOf runs a command that must end with the given exit code: exitcode 2 standup tiers.
func exitCodeOf(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode CODE COMMAND [ARG...]")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = strconv.Itoa(exit.ExitCode())
	} else if err != nil {
		ts.Fatalf("running %s: %v", args[1], err)
	}
	if got != args[0] {
		ts.Fatalf("exit code %s, want %s (%v)", got, args[0], err)
	}
}

// hushed runs a command that may end with 0 or 1 and must not print what a Secret holds.
func hushed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: hush COMMAND [ARG...]")
	}
	err := ts.Exec(args[0], args[1:]...)
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != exitNotReady) {
		ts.Fatalf("running it: %v", err)
	}
	for _, stream := range []string{"stdout", "stderr"} {
		for line := range strings.Lines(ts.ReadFile(stream)) {
			if strings.Contains(strings.ToLower(line), "canary") {
				ts.Fatalf("%s shows a value: %s", stream, line)
			}
		}
	}
}

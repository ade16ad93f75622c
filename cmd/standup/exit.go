package main

import "errors"

// The exit codes, the same for every command.
const (
	exitOK          = 0   // done, ready, clean
	exitNotReady    = 1   // not ready, or findings of severity error
	exitCannotRun   = 2   // usage, git, API: the question could not be asked
	exitInterrupted = 130 // a signal ended the run
)

// UsageError says that the command line does not make sense.
type UsageError struct {
	Message string
	// Help is the command whose help tells more, as it is typed.
	Help string
	// Hint is the way out, where the error knows a better one than the help.
	Hint string
}

func (e *UsageError) Error() string { return e.Message }

// errSilent marks an outcome that the command has already printed in full.
var errSilent = errors.New("already reported")

// notReady marks an error as an answer, not as a failure to get one: exit code 1.
type notReady struct{ error }

func (e notReady) Unwrap() error { return e.error }

// exitCode maps the outcome of a command to the process's exit code.
func exitCode(err error) int {
	var nr notReady
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &nr):
		return exitNotReady
	}
	return exitCannotRun
}

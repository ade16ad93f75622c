package main

import "errors"

// hint tells the way out of an error, where there is one that its text does not say; empty
// otherwise. Libraries return typed errors; only the command line knows which flag helps.
func hint(err error) string {
	var usage *UsageError
	if errors.As(err, &usage) {
		return "standup --help lists the commands, standup <command> --help its flags"
	}
	return ""
}

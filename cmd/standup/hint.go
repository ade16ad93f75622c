package main

import (
	"errors"
	"fmt"

	"github.com/standup-sh/standup/pkg/repo"
	"github.com/standup-sh/standup/pkg/tiers"
)

// hint tells the way out of an error, where there is one that its text does not say; empty
// otherwise. Libraries return typed errors; only the command line knows which flag helps.
func hint(err error) string {
	if _, ok := errors.AsType[*UsageError](err); ok {
		return "standup --help lists the commands, standup <command> --help its flags"
	}
	if _, ok := errors.AsType[*NoKubeconfigError](err); ok {
		return "pass --kubeconfig FILE or set KUBECONFIG"
	}
	if e, ok := errors.AsType[*repo.NotARepositoryError](err); ok {
		return fmt.Sprintf("run standup inside the git work tree, or name it with --repo DIR (looked at: %s)", e.Dir)
	}
	if _, ok := errors.AsType[*repo.UnknownRevisionError](err); ok {
		return "git fetch it first, or name another with --ref"
	}
	if e, ok := errors.AsType[*tiers.AmbiguousEntryError](err); ok {
		return "standup tiers --path " + e.Paths[0]
	}
	if _, ok := errors.AsType[*tiers.NoEntryError](err); ok {
		return "name the folder that Flux syncs with --path"
	}
	return ""
}

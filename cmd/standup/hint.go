package main

import (
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/standup-sh/standup/pkg/audit"
	"github.com/standup-sh/standup/pkg/repo"
	"github.com/standup-sh/standup/pkg/resume"
	"github.com/standup-sh/standup/pkg/tiers"
	"github.com/standup-sh/standup/pkg/wait"
)

// hint tells the way out of an error, where there is one that its text does not say; empty
// otherwise. Libraries return typed errors; only the command line knows which flag helps.
func hint(err error) string {
	if e, ok := errors.AsType[*UsageError](err); ok {
		return e.hint()
	}
	if _, ok := errors.AsType[*NoKubeconfigError](err); ok {
		return "pass --kubeconfig FILE or set KUBECONFIG"
	}
	if is[*KubeconfigError](err) {
		return "kubectl config get-contexts lists the contexts that --context chooses from; --kubeconfig or KUBECONFIG names another file"
	}
	if e, ok := errors.AsType[*repo.NotARepositoryError](err); ok {
		return fmt.Sprintf("run standup inside the git work tree, or name it with --repo DIR (looked at: %s)", e.Dir)
	}
	if _, ok := errors.AsType[*repo.UnknownRevisionError](err); ok {
		return "git fetch it first; git branch -a and git tag list those that are there"
	}
	if e, ok := errors.AsType[*tiers.AmbiguousEntryError](err); ok {
		return "add --path " + e.Paths[0]
	}
	if _, ok := errors.AsType[*tiers.PathNotFoundError](err); ok {
		return "--path is the folder that Flux syncs, from the top of the repository or the current folder; without it standup looks for one"
	}
	if _, ok := errors.AsType[*tiers.NoEntryError](err); ok {
		return "name the folder that Flux syncs with --path"
	}
	if _, ok := errors.AsType[*audit.ConfigError](err); ok {
		return "docs/ci.md shows every field; standup audit --explain all lists the rules"
	}
	if e, ok := errors.AsType[*UnreachableError](err); ok {
		return fmt.Sprintf("is %s the right cluster? kubectl config get-contexts lists the others, --context chooses", e.Host)
	}
	if is[*resume.UnknownTierError](err) || is[*wait.SelectionError](err) {
		return "standup tiers -o name lists the tiers; one outside Flux's namespace is written namespace/name"
	}
	if e, ok := errors.AsType[*PathError](err); ok {
		return fmt.Sprintf("pass --path %s, or the --context of the cluster that syncs %s", path.Clean(e.Cluster), e.Read)
	}
	if e, ok := errors.AsType[*RevisionError](err); ok {
		return e.hint()
	}
	if e, ok := errors.AsType[*NotInstalledError](err); ok {
		if e.API {
			return "install Flux first, for example with flux install or flux bootstrap"
		}
		return "apply the sync object of this entry path (gotk-sync.yaml, or the FluxInstance), or name another path with --path"
	}
	if held, ok := errors.AsType[*resume.HeldError](err); ok {
		return "watch it with standup wait; if that run is dead, its lease ends by itself at " +
			held.Expires.UTC().Format(time.TimeOnly) + " UTC, or at once with --take-over"
	}
	return ""
}

func (e *UsageError) hint() string {
	switch {
	case e.Hint != "":
		return e.Hint
	case e.Help == "" || e.Help == "standup":
		return "standup --help lists the commands, standup <command> --help its flags"
	}
	return e.Help + " --help lists its flags, with examples"
}

func (e *RevisionError) hint() string {
	switch {
	case e.Known:
		return fmt.Sprintf("read what the cluster has with --ref %.12s, or push and let Flux fetch it first", e.Cluster)
	default:
		return "git fetch, then read what the cluster has with --ref " + e.Cluster[:min(12, len(e.Cluster))]
	}
}

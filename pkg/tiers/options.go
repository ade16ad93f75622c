package tiers

import (
	"fmt"
	"strings"

	"github.com/standup-sh/standup/pkg/render"
)

// Options say what to read. The zero value finds the entry path by itself.
type Options struct {
	// Path is the entry path, relative to the tree's root: what the cluster's first Kustomization
	// points to. Empty means the only one FindEntries finds.
	Path string
	// Root is the folder that the artifact is made of, relative to the tree's root. Empty means the
	// one that the sync object's path fits, which is the tree's root for nearly every repository.
	Root string
	// Objects keeps every tier's rendered objects, which makes loading slower: without it, folders
	// that hold nothing of Flux are not rendered.
	Objects bool
	// HelmReleases lists the HelmReleases of every tier.
	HelmReleases bool
	// Sources maps Kind/namespace/name of a source to the folder that holds its content. A relative
	// one starts at the tree's root. One inside the tree is read at the tree's revision, one outside
	// as it is on disk.
	Sources map[string]string
	// Lookup answers substituteFrom for ConfigMaps and Secrets that are not in git; may be nil.
	Lookup render.Lookup
	// Vars are variables for Kustomizations with substituteFrom, over what git says.
	Vars map[string]string
	// AllowRemoteBases lets kustomize fetch URLs.
	AllowRemoteBases bool
}

// NoEntryError says that nothing in the repository looks like a cluster's entry path.
type NoEntryError struct{ Dir string }

func (e *NoEntryError) Error() string {
	return fmt.Sprintf("%s: no entry path found: no gotk-sync.yaml, no FluxInstance with a sync path, no folder of Kustomizations below one called clusters", e.Dir)
}

// AmbiguousEntryError says that a repository has several entry paths.
type AmbiguousEntryError struct{ Paths []string }

func (e *AmbiguousEntryError) Error() string {
	return fmt.Sprintf("%d entry paths found, choose one: %s", len(e.Paths), strings.Join(e.Paths, ", "))
}

// PathNotFoundError says that the entry path does not exist in the tree.
type PathNotFoundError struct {
	Path string
	// Revision is the commit that was read; "" for the work tree.
	Revision string
}

func (e *PathNotFoundError) Error() string {
	if e.Revision != "" {
		return fmt.Sprintf("%s: no such folder at revision %.12s", e.Path, e.Revision)
	}
	return fmt.Sprintf("%s: no such folder", e.Path)
}

// ParseError says that the entry path itself cannot be read, so that there is no graph.
type ParseError struct {
	File string
	Line int
	Err  error
}

func (e *ParseError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, oneLine(e.Err))
	}
	return fmt.Sprintf("%s: %s", e.File, oneLine(e.Err))
}

// Unwrap returns the parser's error.
func (e *ParseError) Unwrap() error { return e.Err }

// SourceError says that an entry of Options.Sources cannot be used.
type SourceError struct {
	Source, Dir string
	Err         error
}

func (e *SourceError) Error() string {
	return fmt.Sprintf("source %s=%s: %s", e.Source, e.Dir, oneLine(e.Err))
}

// Unwrap returns the reason.
func (e *SourceError) Unwrap() error { return e.Err }

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

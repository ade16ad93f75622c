package main

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/tiers"
)

// RevisionError says that what was read is not what the cluster has: a plan made from it would
// not be the one that Flux carries out.
type RevisionError struct {
	// Cluster is the commit of the source's artifact, Local the one that was read.
	Cluster, Local string
	// Dirty counts the files of the work tree that differ from Local.
	Dirty int
	// Known says that the cluster's commit exists in the local repository.
	Known bool
}

func (e *RevisionError) Error() string {
	if e.Cluster == e.Local {
		files := fmt.Sprintf("%d files", e.Dirty)
		if e.Dirty == 1 {
			files = "1 file"
		}
		return fmt.Sprintf("the work tree differs from %.12s, which the cluster has, in %s", e.Local, files)
	}
	return fmt.Sprintf("the cluster is at revision %.12s, the repository at %.12s", e.Cluster, e.Local)
}

// checkRevision compares what was read with the entry's path and source on the cluster, if that is git. It
// marks the graph with the commit it stands for.
func (s *session) checkRevision(ctx context.Context) error {
	if err := s.checkPath(ctx); err != nil {
		return err
	}
	live, err := s.clusterCommit(ctx)
	if err != nil || live == "" {
		return err
	}
	local := s.tree.Revision
	dirty := 0
	if local == "" {
		if local, err = s.tree.Head(); err != nil {
			return err
		}
		paths, err := s.tree.Dirty()
		if err != nil {
			return err
		}
		dirty = len(paths)
	}
	if live != local || dirty > 0 {
		return &RevisionError{Cluster: live, Local: local, Dirty: dirty, Known: s.tree.HasCommit(live)}
	}
	s.graph.Revision = local
	return nil
}

// clusterCommit is the commit of the entry's GitRepository; empty when it has no artifact yet, or
// is no GitRepository.
func (s *session) clusterCommit(ctx context.Context) (string, error) {
	entry := entryOf(s.graph)
	if entry == nil || entry.Kustomization.Spec.SourceRef.Kind != "GitRepository" {
		return "", nil
	}
	parts := strings.Split(entry.Source, "/")
	resource := schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "gitrepositories"}
	o, err := s.Dynamic.Resource(resource).Namespace(parts[1]).Get(ctx, parts[2], metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", s.notInstalled(entry)
	}
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", entry.Source, err)
	}
	revision, _, _ := unstructured.NestedString(o.Object, "status", "artifact", "revision")
	_, commit, _ := strings.Cut(revision, "sha1:")
	return commit, nil
}

// entryOf is the tier that applies the entry path.
func entryOf(g *tiers.Graph) *tiers.Tier {
	for _, t := range g.Tiers {
		if t.Parent == nil && t.Dir == g.Entry {
			return t
		}
	}
	return nil
}

// NotInstalledError says that the cluster lacks what everything else needs.
type NotInstalledError struct {
	// Missing is what was looked for: Flux's API, or the entry's source.
	Missing string
	// API says that Flux itself is missing, rather than its sync object.
	API bool
}

func (e *NotInstalledError) Error() string {
	if e.API {
		return "Flux is not installed on this cluster: it does not serve " + e.Missing
	}
	return e.Missing + " is not on the cluster: Flux has not been pointed at this repository"
}

// notInstalled tells an absent object from an absent API.
func (s *session) notInstalled(entry *tiers.Tier) error {
	const group = "source.toolkit.fluxcd.io/v1"
	if _, err := s.Discovery.ServerResourcesForGroupVersion(group); apierrors.IsNotFound(err) {
		return &NotInstalledError{Missing: group, API: true}
	}
	return &NotInstalledError{Missing: entry.Source}
}

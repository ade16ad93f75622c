package diff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/standup-sh/standup/pkg/tiers"
)

// Step is one thing to do, in order: a commit, or commands to run.
type Step struct {
	Title string
	// Edits are the changes of a commit, one line each: "platform-config.yaml: prune: false".
	Edits []string
	// Commands can be pasted into a shell.
	Commands []string
}

// Fallback returns the steps by which the objects that leave one tier are adopted by their new
// owners and never deleted; nothing when they are adopted anyway.
func (d *Diff) Fallback(from tiers.Key, before *tiers.Graph) []Step {
	var moves []Move
	for _, m := range d.Moves {
		if m.From == from && (m.Outcome == Recreated || m.Outcome == Race) {
			moves = append(moves, m)
		}
	}
	old := find(before, from)
	if len(moves) == 0 || old == nil {
		return nil
	}
	s := newSide(before)
	c := &comparison{before: s, after: s}
	gone := slices.Contains(d.Removed, from)
	setting, restore := "prune: false", "prune: true"
	if gone {
		setting = "deletionPolicy: Orphan"
	}
	file := old.File
	if file == "" {
		file = "the manifest of " + from.String()
	}
	var steps []Step
	hold := Step{Title: fmt.Sprintf("keep %s from deleting", from), Edits: []string{fmt.Sprintf("%s: spec.%s", file, setting)}}
	if !gone && c.heedsParent(old) {
		hold.Title = "this change, and keep " + from.String() + " from deleting"
		hold.Edits = append(hold.Edits, "everything of this change")
		steps = append(steps, hold)
	} else {
		hold.Commands = []string{fmt.Sprintf("flux reconcile kustomization %s -n %s --with-source   # waits until it has applied that commit", from.Name, from.Namespace)}
		steps = append(steps, hold, Step{Title: "this change", Edits: []string{"everything of this change"}})
	}
	see := Step{Title: "see the new owner on every object before going on"}
	for _, m := range moves {
		see.Commands = append(see.Commands, fmt.Sprintf(`kubectl get %s -o jsonpath='{.metadata.labels.kustomize\.toolkit\.fluxcd\.io/name}{"\n"}'   # %s`, resource(m.ID), m.To.Name))
	}
	steps = append(steps, see)
	if !gone {
		steps = append(steps, Step{Title: "let " + from.String() + " prune again", Edits: []string{fmt.Sprintf("%s: spec.%s", file, restore)}})
	}
	return steps
}

// resource writes an object as kubectl's arguments.
func resource(id ID) string {
	kind := strings.ToLower(id.Kind)
	if id.Group != "" {
		kind += "." + id.Group
	}
	if id.Namespace != "" {
		return fmt.Sprintf("%s/%s -n %s", kind, id.Name, id.Namespace)
	}
	return kind + "/" + id.Name
}

func find(g *tiers.Graph, k tiers.Key) *tiers.Tier {
	for _, t := range g.Tiers {
		if t.Key == k {
			return t
		}
	}
	return nil
}

// MovedFrom lists the tiers that objects leave, sorted.
func (d *Diff) MovedFrom() []tiers.Key {
	var out []tiers.Key
	for _, m := range d.Moves {
		if !slices.Contains(out, m.From) {
			out = append(out, m.From)
		}
	}
	slices.SortFunc(out, compareKeys)
	return out
}

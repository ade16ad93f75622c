package tiers

import (
	"errors"
	"io/fs"
	"path"
	"sort"
	"strings"

	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/pkg/repo"
)

func (l *loader) problem(p Problem) { l.problems = append(l.problems, p) }

// reportBuild turns what a build found wrong into problems.
func (l *loader) reportBuild(s *state) {
	t := s.tier
	var pe *render.PathError
	switch {
	case errors.As(s.err, &pe):
		if strings.Contains(pe.Dir, "${") {
			t.Opaque = "its path holds a variable that is not known"
		} else {
			t.Opaque = "path " + pe.Dir + " does not exist"
			l.problem(Problem{Rule: "missing-path", Severity: Error, Tier: t.Key, File: t.File, Line: t.Line,
				Message: "Kustomization/" + keyString(t.Key) + ": " + t.Opaque + l.nearPath(s, pe.Dir)})
		}
		return
	case s.err != nil:
		t.Opaque = oneLine(s.err)
		return
	}
	if link := linkIn(s.src.Tree(), s.res.Dir); link != "" {
		l.problem(Problem{Rule: "missing-path", Severity: Error, Tier: t.Key, File: link,
			Message: "Kustomization/" + keyString(t.Key) + ": path " + s.res.Dir + " leads through the symbolic link " + link +
				", which source-controller leaves out of an artifact: Flux finds no such path"})
	}
	for _, err := range s.res.Faults {
		p := faultProblem(t.Key, err)
		if p.File != "" {
			p.File = s.src.Tree().Origin(p.File)
		}
		l.problem(p)
		if reason := opaqueFault(err); reason != "" && t.Opaque == "" {
			t.Opaque = reason
		}
	}
	for _, name := range s.res.Linked {
		l.problem(Problem{Rule: "symlink", Severity: Warning, Tier: t.Key, File: name,
			Message: "Kustomization/" + keyString(t.Key) + ": " + name +
				" is reached through a symbolic link, which source-controller leaves out of an artifact"})
	}
	l.reportVariables(s)
}

// linkIn returns the first name of a folder's path that is a symbolic link; empty if there is none.
// An archive holds files and folders alone (fluxcd/pkg/artifact/storage, Archive), so that
// kustomize-controller, which looks for the folder first of all, does not find it.
func linkIn(tree *repo.Tree, dir string) string {
	for _, name := range ancestors(dir) {
		if e, err := tree.Lstat(name); err == nil && e.Mode&fs.ModeSymlink != 0 {
			return name
		}
	}
	return ""
}

// faultProblem grades one thing that makes a build fail.
func faultProblem(k Key, err error) Problem {
	p := Problem{Rule: "build", Severity: Error, Tier: k, Message: oneLine(err)}
	var fe *render.FileError
	var re *render.ReferenceError
	var be *render.BuildError
	switch {
	case errors.As(err, &fe):
		p.Rule, p.File, p.Line = "unreadable", fe.File, fe.Line
	case errors.As(err, &re) && re.Remote:
		p.Rule, p.Severity, p.File, p.Line = "remote-base", Warning, re.File, re.Line
	case errors.As(err, &re):
		p.Rule, p.File, p.Line = "missing-file", re.File, re.Line
	case errors.As(err, &be):
		p.File, p.Line = be.File, be.Line
		if p.File == "" {
			p.File = path.Join(be.Dir, "kustomization.yaml")
		}
	}
	return p
}

// opaqueFault says why the objects of a tier are not all known.
func opaqueFault(err error) string {
	var re *render.ReferenceError
	if errors.As(err, &re) && re.Remote {
		return "remote base " + re.Ref
	}
	return ""
}

func sortProblems(ps []Problem) {
	sort.SliceStable(ps, func(i, j int) bool {
		a, b := ps[i], ps[j]
		if a.File != b.File {
			return a.File < b.File
		}
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		if a.Rule != b.Rule {
			return a.Rule < b.Rule
		}
		if a.Tier != b.Tier {
			return less(a.Tier, b.Tier)
		}
		return a.Message < b.Message
	})
}

func keyString(k Key) string { return k.Namespace + "/" + k.Name }

func pathString(keys []Key) string {
	names := make([]string, 0, len(keys))
	for _, k := range keys {
		names = append(names, keyString(k))
	}
	return strings.Join(names, " -> ")
}

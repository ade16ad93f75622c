package render

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
)

// beside lists the manifests that lie in a folder itself: what is likely meant where its
// kustomization file cannot be read.
func (s *Source) beside(dir string) []string {
	entries, err := s.tree.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		if ext := path.Ext(e.Name); e.Mode != 0 || (ext != ".yaml" && ext != ".yml") || s.ignored(name, false) ||
			slices.Contains(konfig.RecognizedKustomizationFileNames(), e.Name) {
			continue
		}
		out = append(out, name)
	}
	return out
}

// several reports folders with more than one kustomization file, which kustomize refuses
// (loadKustFile in its api/internal/target/kusttarget.go).
func (b *builder) several() {
	for _, k := range b.c.kustomizations {
		if names := b.src.kustomizationFiles(k.dir); len(names) > 1 {
			b.fault(&BuildError{Dir: b.res.Dir, File: names[0], Line: 1,
				Err: fmt.Errorf("one folder holds %s, and kustomize takes one only: remove all but one", strings.Join(names, " and "))})
		}
	}
}

// explain puts kustomize's error in terms of the files at fault where it is one object written twice.
func (b *builder) explain(err error) error {
	if strings.Contains(err.Error(), "already registered id") {
		seen := map[Identity]string{}
		for _, file := range b.c.resources {
			for _, d := range b.src.manifestAt(file).docs {
				at := fmt.Sprintf("%s:%d", b.src.tree.Origin(file), d.line)
				if first, ok := seen[d.Identity]; ok {
					id := d.Kind + "/" + d.Name
					if d.Namespace != "" {
						id = d.Kind + "/" + d.Namespace + "/" + d.Name
					}
					return &BuildError{Dir: b.res.Dir, File: file, Line: d.line,
						Err: fmt.Errorf("%s is written in %s and in %s: remove one", id, first, at)}
				}
				seen[d.Identity] = at
			}
		}
	}
	return &BuildError{Dir: b.res.Dir, Err: &steadyError{err}}
}

// pointer is how kustomize prints a generator in an error.
var pointer = regexp.MustCompile(`&\{0x[0-9a-f]+ (?:<nil>|0x[0-9a-f]+)\}: `)

// steadyError leaves out of an error what differs from run to run.
type steadyError struct{ error }

func (e *steadyError) Error() string { return pointer.ReplaceAllString(e.error.Error(), "") }

func (e *steadyError) Unwrap() error { return e.error }

package tiers

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/standup-sh/standup/pkg/repo"
)

// Entry is a place where a cluster's graph begins.
type Entry struct {
	// Path is the repository-relative entry path.
	Path string
	// Root is the repository-relative folder the artifact is made of; "." or empty for the whole.
	Root string
	// File and Line are where the sync object is written; File is empty if there is none.
	File string
	Line int
	// Name and Namespace are those of the sync's Kustomization, Source the kind of its source; empty
	// where they are not known.
	Name, Namespace, Source string
}

// FindEntries looks through a tree for entry paths: the sync object that flux bootstrap writes,
// a FluxInstance with a sync - as an object, or in the values of the flux-instance chart - and any
// other Kustomization that applies the folder it lies in. The result is sorted by path.
func FindEntries(tree *repo.Tree) ([]Entry, error) {
	f := &finder{tree: tree}
	if err := f.walk("."); err != nil {
		return nil, err
	}
	slices.SortFunc(f.found, func(a, b Entry) int {
		if a.Path != b.Path {
			return compareStrings(a.Path, b.Path)
		}
		return compareStrings(a.File, b.File)
	})
	return slices.CompactFunc(f.found, func(a, b Entry) bool { return a.Path == b.Path }), nil
}

type finder struct {
	tree  *repo.Tree
	found []Entry
}

func (f *finder) walk(dir string) error {
	entries, err := f.tree.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		switch {
		case strings.HasPrefix(e.Name, "."):
			// Archives, editors' and forges' folders are no clusters.
		case e.IsDir():
			if err := f.walk(name); err != nil {
				return err
			}
		case e.Mode == 0 && (path.Ext(name) == ".yaml" || path.Ext(name) == ".yml"):
			data, err := f.tree.ReadFile(name)
			if err != nil {
				return err
			}
			f.file(name, data)
		}
	}
	return nil
}

// file looks at one manifest. Most are dismissed by their text alone.
func (f *finder) file(name string, data []byte) {
	flux := bytes.Contains(data, []byte(kustomizeGroup+"/")) && bytes.Contains(data, []byte("path:"))
	instance := bytes.Contains(data, []byte("sync:")) &&
		(bytes.Contains(data, []byte("FluxInstance")) || bytes.Contains(data, []byte("instance:")))
	if !flux && !instance {
		return
	}
	line := 1
	for _, text := range strings.Split("\n"+string(data), "\n---") {
		var doc map[string]any
		if yaml.Unmarshal([]byte(text), &doc) == nil && doc != nil {
			f.document(name, line, doc)
		}
		line += strings.Count(text, "\n")
	}
}

func (f *finder) document(file string, line int, doc map[string]any) {
	apiVersion, _ := doc["apiVersion"].(string)
	kind, _ := doc["kind"].(string)
	meta, _ := doc["metadata"].(map[string]any)
	e := Entry{File: file, Line: line}
	e.Name, _ = meta["name"].(string)
	e.Namespace, _ = meta["namespace"].(string)
	spec, _ := doc["spec"].(map[string]any)
	switch {
	case strings.HasPrefix(apiVersion, kustomizeGroup+"/") && kind == "Kustomization":
		f.selfApplied(e, spec)
	case kind == "FluxInstance":
		f.sync(e, nested(spec, "sync"))
	case kind == "HelmRelease":
		e.Name, e.Namespace = "", ""
		f.sync(e, nested(spec, "values", "instance", "sync"))
	case kind == "ConfigMap":
		data, _ := doc["data"].(map[string]any)
		for _, v := range data {
			text, _ := v.(string)
			var values map[string]any
			if strings.Contains(text, "sync:") && yaml.Unmarshal([]byte(text), &values) == nil {
				f.sync(Entry{File: file, Line: line}, nested(values, "instance", "sync"))
			}
		}
	case kind == "":
		f.sync(Entry{File: file, Line: line}, nested(doc, "instance", "sync"))
	}
}

func nested(m map[string]any, fields ...string) map[string]any {
	for _, f := range fields {
		m, _ = m[f].(map[string]any)
	}
	return m
}

// selfApplied takes a Kustomization whose path holds the file it is written in.
func (f *finder) selfApplied(e Entry, spec map[string]any) {
	p, _ := spec["path"].(string)
	rel := strings.TrimPrefix(path.Clean("/"+p), "/")
	ref := nested(spec, "sourceRef")
	e.Source, _ = ref["kind"].(string)
	for _, root := range ancestors(path.Dir(e.File)) {
		full := path.Join(root, rel)
		if rel != "" && f.isDir(full) && (full == path.Dir(e.File) || strings.HasPrefix(e.File, full+"/")) && path.Base(e.File) == "gotk-sync.yaml" {
			e.Path, e.Root = full, root
			f.found = append(f.found, e)
			return
		}
	}
}

// sync takes a FluxInstance's sync.
func (f *finder) sync(e Entry, sync map[string]any) {
	p, _ := sync["path"].(string)
	if p == "" {
		return
	}
	if name, _ := sync["name"].(string); name != "" {
		e.Name = name
	} else {
		e.Name = e.Namespace
	}
	e.Source, _ = sync["kind"].(string)
	rel := strings.TrimPrefix(path.Clean("/"+p), "/")
	for _, root := range ancestors(path.Dir(e.File)) {
		if full := path.Join(root, rel); f.isDir(full) {
			e.Path, e.Root = full, root
			f.found = append(f.found, e)
			return
		}
	}
}

func (f *finder) isDir(name string) bool {
	e, err := f.tree.Stat(name)
	return err == nil && e.IsDir()
}

// ancestors lists the folders above and including dir, the top first.
func ancestors(dir string) []string {
	out := []string{"."}
	if dir == "." {
		return out
	}
	elems := strings.Split(dir, "/")
	for i := range elems {
		out = append(out, strings.Join(elems[:i+1], "/"))
	}
	return out
}

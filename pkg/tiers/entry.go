package tiers

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	kustypes "sigs.k8s.io/kustomize/api/types"
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
	// Patches are what a FluxInstance patches its manifests with, the sync's Kustomization among them.
	Patches []kustypes.Patch
}

// FindEntries looks through a tree for entry paths: the sync object that flux bootstrap writes,
// a FluxInstance with a sync - as an object, or in the values of the flux-instance chart. Where there
// is none it goes by convention: folders that a Kustomization outside the graph points to, as one made by hand at
// bootstrap, and the folders below one called clusters that hold Kustomizations. The result is sorted by path.
func FindEntries(tree *repo.Tree) ([]Entry, error) {
	f := &finder{tree: tree}
	if err := f.walk("."); err != nil {
		return nil, err
	}
	if len(f.found) == 0 {
		for _, m := range f.others {
			f.documents(m.name, m.data)
		}
		f.found = f.byConvention()
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
	// kustomizations are all Flux Kustomizations written in the tree.
	kustomizations []written
	// clusters are the folders below one called clusters that kustomize can build.
	clusters []string
	// others are the manifests with Kustomizations that only matter where there is no sync object.
	others []manifest
}

// manifest is a file and its content.
type manifest struct {
	name string
	data []byte
}

// written is a Kustomization as a file writes it.
type written struct {
	Entry
	// target is the folder its path names, source the name of its source.
	target, source string
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
			if path.Base(dir) == "clusters" && f.builds(name) {
				f.clusters = append(f.clusters, name)
			}
			if err := f.walk(name); err != nil {
				return err
			}
		case e.Mode == 0 && isManifest(name):
			data, err := f.tree.ReadFile(name)
			if err != nil {
				return err
			}
			if path.Ext(name) == ".gotmpl" {
				data = action.ReplaceAll(data, []byte("x"))
			}
			f.file(name, data)
		}
	}
	return nil
}

// action is an expression of a Go template, which helmfile's values files may hold.
var action = regexp.MustCompile(`\{\{[^{}]*\}\}`)

func isManifest(name string) bool {
	name = strings.TrimSuffix(name, ".gotmpl")
	return path.Ext(name) == ".yaml" || path.Ext(name) == ".yml"
}

// file looks at one manifest. Most are dismissed by their text alone.
func (f *finder) file(name string, data []byte) {
	flux := bytes.Contains(data, []byte(kustomizeGroup+"/")) && bytes.Contains(data, []byte("path:"))
	instance := bytes.Contains(data, []byte("sync:")) &&
		(bytes.Contains(data, []byte("FluxInstance")) || bytes.Contains(data, []byte("instance:")))
	switch {
	case instance, flux && path.Base(name) == syncFile:
		f.documents(name, data)
	case flux:
		f.others = append(f.others, manifest{name, data})
	}
}

// syncFile is what flux bootstrap calls the file with the sync object.
const syncFile = "gotk-sync.yaml"

// documents looks at the documents of a manifest.
func (f *finder) documents(name string, data []byte) {
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
		f.sync(e, spec)
	case kind == "HelmRelease":
		e.Name, e.Namespace = "", ""
		f.sync(e, nested(spec, "values", "instance"))
	case kind == "ConfigMap":
		data, _ := doc["data"].(map[string]any)
		for _, v := range data {
			text, _ := v.(string)
			var values map[string]any
			if strings.Contains(text, "sync:") && yaml.Unmarshal([]byte(text), &values) == nil {
				f.sync(Entry{File: file, Line: line}, nested(values, "instance"))
			}
		}
	case kind == "":
		f.sync(Entry{File: file, Line: line}, nested(doc, "instance"))
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
	source, _ := ref["name"].(string)
	f.note(e, rel, source)
	for _, root := range ancestors(path.Dir(e.File)) {
		full := path.Join(root, rel)
		if rel != "" && f.isDir(full) && (full == path.Dir(e.File) || strings.HasPrefix(e.File, full+"/")) && path.Base(e.File) == syncFile {
			e.Path, e.Root = full, root
			f.found = append(f.found, e)
			return
		}
	}
}

// note remembers a Kustomization whose path exists.
func (f *finder) note(e Entry, rel, source string) {
	for _, root := range ancestors(path.Dir(e.File)) {
		if full := path.Join(root, rel); rel != "" && f.isDir(full) {
			e.Root = root
			f.kustomizations = append(f.kustomizations, written{Entry: e, target: full, source: source})
			return
		}
	}
}

// builds reports whether a folder has a kustomization file.
func (f *finder) builds(dir string) bool {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if e, err := f.tree.Stat(path.Join(dir, name)); err == nil && !e.IsDir() {
			return true
		}
	}
	return false
}

// byConvention finds entry paths without a sync object.
func (f *finder) byConvention() []Entry {
	holds := map[string]bool{}
	for _, k := range f.kustomizations {
		for _, dir := range ancestors(path.Dir(k.File)) {
			holds[dir] = true
		}
	}
	var out []Entry
	for _, k := range f.kustomizations {
		// Syncs have the name of their source; one widespread template calls them cluster.
		self := below(k.File, k.target) && (k.Name == k.source || k.Name == "cluster")
		// One that no other Kustomization applies, and that applies Kustomizations.
		applied := slices.ContainsFunc(f.kustomizations, func(o written) bool {
			return o.File != k.File && below(k.File, o.target)
		})
		if self || (!applied && holds[k.target] && !below(k.File, k.target) && !strings.Contains("/"+k.File, "/clusters/")) {
			e := k.Entry
			e.Path = k.target
			out = append(out, e)
		}
	}
	for dir := range holds {
		if path.Base(path.Dir(dir)) == "clusters" && !f.builds(dir) {
			out = append(out, Entry{Path: f.descend(dir, holds)})
		}
	}
	for _, dir := range f.clusters {
		out = append(out, Entry{Path: dir})
	}
	return out
}

func below(file, dir string) bool { return dir == "." || strings.HasPrefix(file, dir+"/") }

// descend goes down as long as one single folder holds all the Kustomizations.
func (f *finder) descend(dir string, holds map[string]bool) string {
	for {
		var next []string
		for _, k := range f.kustomizations {
			if path.Dir(k.File) == dir {
				return dir
			}
		}
		for h := range holds {
			if path.Dir(h) == dir {
				next = append(next, h)
			}
		}
		if len(next) != 1 || f.builds(dir) {
			return dir
		}
		dir = next[0]
	}
}

// sync takes the sync of a FluxInstance's spec.
func (f *finder) sync(e Entry, instance map[string]any) {
	sync := nested(instance, "sync")
	p, _ := sync["path"].(string)
	if p == "" {
		return
	}
	e.Patches = patchesOf(instance)
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

// patchesOf reads the patches of a FluxInstance's spec; none where they are not of their form.
func patchesOf(instance map[string]any) []kustypes.Patch {
	list, _ := nested(instance, "kustomize")["patches"].([]any)
	var out []kustypes.Patch
	if data, err := yaml.Marshal(list); err != nil || yaml.Unmarshal(data, &out) != nil {
		return nil
	}
	return out
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

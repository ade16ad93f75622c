package render

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	generator "github.com/fluxcd/pkg/kustomize"
	kustypes "sigs.k8s.io/kustomize/api/types"
)

// kustFile is a parsed kustomization file of a folder; parsing is done once however many tiers use it.
type kustFile struct {
	once sync.Once
	file string
	kus  *kustypes.Kustomization
	err  error
	// reserved says that the file writes what kustomize takes for its own notes.
	reserved bool
}

// kustomization parses the kustomization file of a folder; nil if the folder has none.
func (s *Source) kustomization(dir string) *kustFile {
	v, ok := s.files.Load(dir)
	if !ok {
		v, _ = s.files.LoadOrStore(dir, &kustFile{})
	}
	k := v.(*kustFile)
	k.once.Do(func() {
		file, ok := s.kustomizationFile(dir)
		if !ok {
			return
		}
		k.file, k.kus = file, &kustypes.Kustomization{}
		data, err := s.tree.ReadFile(file)
		if err == nil {
			err = k.kus.Unmarshal(data)
			k.reserved = reserved(data)
		}
		if err != nil {
			k.err = &FileError{File: file, Line: errorLine(err, data), Err: err}
		}
	})
	if k.file == "" {
		return nil
	}
	return k
}

// closure is everything a build reads.
type closure struct {
	// files are repository paths of manifests and other input, folders left out, in order of reading.
	files []string
	// openapi says that a kustomization file sets openapi.
	openapi bool
	// faults are the references that cannot be followed.
	faults []fault
	// resources are those of files that hold objects.
	resources []string
	// generated are the objects that generators make, under the names they are given.
	generated []Identity
	// generators are the ConfigMaps and Secrets among them, with the files that hold their generators.
	generators []generated
	// linked are the files that are read through a symbolic link.
	linked []string
	// kustomizations are the kustomization files, the built folder's own first.
	kustomizations []kustDir
}

// kustDir is a kustomization file and its folder.
type kustDir struct {
	dir string
	kus *kustypes.Kustomization
}

// fault is a reference to leave out of the kustomization file of dir.
type fault struct {
	dir, ref string
	err      error
}

// generated is an object that a generator makes, and the kustomization file of the generator.
type generated struct {
	Identity
	file string
}

type walker struct {
	src     *Source
	c       *closure
	seen    map[string]bool
	allowed bool
}

// closure follows every reference from the kustomization file of dir, which is given because the
// controller changes it.
func (s *Source) closure(dir, file string, kus *kustypes.Kustomization, allowRemote bool) *closure {
	w := &walker{src: s, c: &closure{}, seen: map[string]bool{dir: true}, allowed: allowRemote}
	w.visit(dir, file, kus)
	return w.c
}

func (w *walker) visit(dir, file string, kus *kustypes.Kustomization) {
	w.c.files = append(w.c.files, file)
	w.link(file)
	w.c.kustomizations = append(w.c.kustomizations, kustDir{dir: dir, kus: kus})
	if len(kus.OpenAPI) > 0 {
		w.c.openapi = true
		w.file(dir, file, kus.OpenAPI["path"])
	}
	for _, refs := range [][]string{kus.Resources, kus.Bases, kus.Components} {
		for _, ref := range refs {
			w.follow(dir, file, ref)
		}
	}
	for _, refs := range [][]string{kus.Crds, kus.Configurations} {
		for _, ref := range refs {
			w.file(dir, file, ref)
		}
	}
	for _, refs := range [][]string{kus.Generators, kus.Transformers, kus.Validators} {
		for _, ref := range refs {
			// What a plugin makes of its configuration is not known before it runs.
			w.c.generated = append(w.c.generated, Identity{})
			if !inline(ref) {
				w.follow(dir, file, ref)
			}
			w.plugin(dir, file, ref)
		}
	}
	w.patches(dir, file, kus)
	w.generated(dir, file, kus)
}

func (w *walker) patches(dir, file string, kus *kustypes.Kustomization) {
	for _, p := range slices.Concat(kus.Patches, kus.PatchesJson6902) {
		w.file(dir, file, p.Path)
	}
	for _, p := range kus.PatchesStrategicMerge {
		if !inline(string(p)) {
			w.file(dir, file, string(p))
		}
	}
	for _, r := range kus.Replacements {
		w.file(dir, file, r.Path)
	}
}

func (w *walker) generated(dir, file string, kus *kustypes.Kustomization) {
	var all []kustypes.GeneratorArgs
	for _, g := range kus.ConfigMapGenerator {
		all = append(all, g.GeneratorArgs)
		w.generates(file, "ConfigMap", g.GeneratorArgs)
	}
	for _, g := range kus.SecretGenerator {
		all = append(all, g.GeneratorArgs)
		w.generates(file, "Secret", g.GeneratorArgs)
	}
	for _, g := range all {
		for _, f := range slices.Concat(g.FileSources, g.EnvSources, []string{g.EnvSource}) {
			if _, after, ok := strings.Cut(f, "="); ok {
				f = after
			}
			w.file(dir, file, f)
		}
	}
}

func (w *walker) generates(file, kind string, g kustypes.GeneratorArgs) {
	id := Identity{APIVersion: "v1", Kind: kind, Namespace: g.Namespace, Name: g.Name}
	w.c.generated = append(w.c.generated, id)
	w.c.generators = append(w.c.generators, generated{id, file})
}

// inline reports whether a field that takes a path or YAML text holds text.
func inline(ref string) bool { return strings.ContainsAny(ref, "\n{") || strings.Contains(ref, ": ") }

// remote reports whether kustomize would fetch the reference rather than read it.
func remote(ref string) bool {
	low := strings.ToLower(ref)
	return !generator.IsLocalRelativePath(ref) || strings.Contains(low, "://") ||
		strings.HasPrefix(low, "git@") || strings.Contains(low, "?ref=")
}

func (w *walker) lineOf(file, text string) int {
	return w.src.lineOf(w.src.tree.Origin(file), text)
}

// file follows a reference that must be a file.
func (w *walker) file(dir, file, ref string) {
	switch name := path.Join(dir, ref); {
	case ref == "":
	case remote(ref):
		w.fetch(dir, file, ref)
	case w.src.isFile(name) || w.src.isDir(name):
		w.add(name)
	default:
		e := &ReferenceError{File: file, Line: w.lineOf(file, ref), Ref: ref}
		if _, err := w.src.tree.Stat(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			e.Err = err
		}
		w.fault(dir, ref, e)
	}
}

// follow takes a reference that may be a file or a folder to build.
func (w *walker) follow(dir, file, ref string) {
	name := path.Join(dir, ref)
	if remote(ref) || w.src.isFile(name) || !w.src.isDir(name) {
		if !w.seen[name] && w.src.isFile(name) {
			w.c.resources = append(w.c.resources, name)
		}
		w.file(dir, file, ref)
		return
	}
	if w.seen[name] {
		return
	}
	w.seen[name] = true
	k := w.src.kustomization(name)
	switch {
	case k == nil:
		w.fault(dir, ref, &ReferenceError{File: file, Line: w.lineOf(file, ref), Ref: path.Join(ref, "kustomization.yaml")})
	case k.err != nil:
		w.fault(dir, ref, k.err)
	default:
		w.visit(name, k.file, k.kus)
	}
}

func (w *walker) add(name string) {
	if !w.seen[name] {
		w.seen[name] = true
		w.c.files = append(w.c.files, name)
		w.link(name)
	}
}

// link notes a file that is not where its name says.
func (w *walker) link(name string) {
	if real, err := w.src.tree.Resolve(name); err == nil && real != path.Clean(name) {
		w.c.linked = append(w.c.linked, name)
	}
}

func (w *walker) fetch(dir, file, ref string) {
	if !w.allowed {
		w.fault(dir, ref, &ReferenceError{File: file, Line: w.lineOf(file, ref), Ref: ref, Remote: true})
	}
}

func (w *walker) fault(dir, ref string, err error) {
	w.c.faults = append(w.c.faults, fault{dir: dir, ref: ref, err: err})
}

// plugin looks into the configuration of a generator or transformer for files it would read.
func (w *walker) plugin(dir, file, ref string) {
	text := []byte(ref)
	if !inline(ref) {
		var err error
		if text, err = w.src.tree.ReadFile(path.Join(dir, ref)); err != nil {
			return
		}
	}
	for _, u := range urls(text) {
		if !w.allowed {
			w.fault(dir, ref, &ReferenceError{File: file, Line: w.lineOf(file, u), Ref: u, Remote: true})
		}
	}
}

// urls lists the values in a plugin's configuration that kustomize would fetch.
func urls(text []byte) []string {
	var out []string
	for _, word := range strings.Fields(string(text)) {
		word = strings.Trim(word, `"',`)
		if strings.HasPrefix(word, "http://") || strings.HasPrefix(word, "https://") {
			out = append(out, word)
		}
	}
	return out
}

// without returns a copy of the kustomization file without a reference.
func without(kus *kustypes.Kustomization, ref string) *kustypes.Kustomization {
	k := *kus
	drop := func(list []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == ref })
	}
	k.Resources, k.Bases, k.Components = drop(k.Resources), drop(k.Bases), drop(k.Components)
	k.Crds, k.Configurations = drop(k.Crds), drop(k.Configurations)
	k.Generators, k.Transformers, k.Validators = drop(k.Generators), drop(k.Transformers), drop(k.Validators)
	atPath := func(p kustypes.Patch) bool { return p.Path == ref }
	k.Patches = slices.DeleteFunc(slices.Clone(k.Patches), atPath)
	k.PatchesJson6902 = slices.DeleteFunc(slices.Clone(k.PatchesJson6902), atPath)
	k.PatchesStrategicMerge = slices.DeleteFunc(slices.Clone(k.PatchesStrategicMerge),
		func(p kustypes.PatchStrategicMerge) bool { return string(p) == ref })
	k.Replacements = slices.DeleteFunc(slices.Clone(k.Replacements),
		func(r kustypes.ReplacementField) bool { return r.Path == ref })
	uses := func(g kustypes.KvPairSources) bool {
		return slices.ContainsFunc(slices.Concat(g.FileSources, g.EnvSources, []string{g.EnvSource}),
			func(f string) bool { return f == ref || strings.HasSuffix(f, "="+ref) })
	}
	k.ConfigMapGenerator = slices.DeleteFunc(slices.Clone(k.ConfigMapGenerator),
		func(g kustypes.ConfigMapArgs) bool { return uses(g.KvPairSources) })
	k.SecretGenerator = slices.DeleteFunc(slices.Clone(k.SecretGenerator),
		func(g kustypes.SecretArgs) bool { return uses(g.KvPairSources) })
	if k.OpenAPI["path"] == ref {
		k.OpenAPI = nil
	}
	return &k
}

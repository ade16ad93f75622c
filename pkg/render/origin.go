package render

import (
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const originKey = "config.kubernetes.io/origin"

// origin turns kustomize's origin annotation into a repository path: the manifest an object came
// from, or the kustomization file whose generator made it. It is empty for remote bases.
func (b *builder) origin(text string) string {
	var file string
	for _, line := range strings.Split(text, "\n") {
		key, val, _ := strings.Cut(line, ": ")
		switch key {
		case "repo":
			return ""
		case "path", "configuredIn":
			if file == "" {
				file = strings.Trim(val, `"'`)
			}
		}
	}
	if file == "" {
		return ""
	}
	return b.src.tree.Origin(path.Join(b.res.Dir, file))
}

// locate fills in the lines of the objects that Flux itself reads. The lines of the others are
// found by Locate, when something is said about them.
func (b *builder) locate(objects []Object) {
	for i := range objects {
		o := &objects[i]
		if o.Line == 0 && strings.Contains(o.GetAPIVersion(), "fluxcd") {
			o.Line = b.src.Line(*o)
		}
	}
	for i := range b.res.Unknown {
		u := &b.res.Unknown[i]
		u.Line = b.src.lineOf(u.File, "${"+u.Name)
	}
}

// Line finds the 1-based line of the object's document in its file; 0 if it is not written there.
func (s *Source) Line(o Object) int {
	if o.File == "" {
		return 0
	}
	return s.line(o.File, o.GetAPIVersion(), o.GetKind(), o.GetNamespace(), o.GetName())
}

// broken lists the manifests of the build that are not YAML, each as the reference to leave out.
func (b *builder) broken() []fault {
	var out []fault
	for _, file := range b.c.files {
		ext := path.Ext(file)
		if ext != ".yaml" && ext != ".yml" && ext != ".json" {
			continue
		}
		if err := b.src.manifestAt(file).err; err != nil {
			for _, user := range b.users(file) {
				user.err = err
				out = append(out, user)
			}
		}
	}
	return out
}

// users finds the kustomization files that name a file.
func (b *builder) users(file string) []fault {
	var out []fault
	for _, k := range b.c.kustomizations {
		for _, ref := range slices.Concat(k.kus.Resources, k.kus.Bases) {
			if path.Join(k.dir, ref) == file {
				out = append(out, fault{dir: k.dir, ref: ref})
			}
		}
	}
	return out
}

// raw reads the documents of the build's files as they are written.
func (b *builder) raw() []Object {
	b.res.Raw = true
	if b.c == nil {
		return nil
	}
	var out []Object
	for _, file := range b.c.files {
		data, err := b.src.tree.ReadFile(file)
		if err != nil {
			continue
		}
		for _, part := range split(data) {
			j, err := yaml.YAMLToJSON(part.text)
			if err != nil {
				continue
			}
			u := &unstructured.Unstructured{}
			if u.UnmarshalJSON(j) != nil {
				continue
			}
			if more, err := decode(j, file); err == nil {
				out = append(out, more...)
			}
		}
	}
	return out
}

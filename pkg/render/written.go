package render

import (
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/resource"
)

// place is a document of the build, and the file that holds it.
type place struct{ namespace, file string }

// sought is what a transformation rarely changes of an object.
type sought struct{ group, kind, name string }

// written finds the file that each object of a build was written in, by what it is called. It returns
// false where that leaves a doubt: an object that was renamed, or one of several of the same name
// that neither their namespaces nor their order tell apart. sorted says that the order is not that
// of the files.
func (b *builder) written(resources []*resource.Resource, sorted bool) ([]string, bool) {
	places := b.places()
	keys := make([]sought, len(resources))
	count := map[sought]int{}
	for i, r := range resources {
		gvk := r.GetGvk()
		keys[i] = sought{gvk.Group, gvk.Kind, r.GetName()}
		count[keys[i]]++
	}
	if !sorted {
		b.renamedNamespaces(places, keys, count)
	}
	at := map[sought]int{}
	files := make([]string, len(resources))
	for i, key := range keys {
		found := places[key]
		if len(found) == 0 {
			file, ok := b.generator(key)
			if !ok {
				return nil, false
			}
			files[i] = file
			continue
		}
		file, ok := pick(found, count[key], at[key], resources[i].GetNamespace(), sorted)
		if !ok {
			return nil, false
		}
		files[i] = b.src.tree.Origin(file)
		at[key]++
	}
	return files, true
}

// places lists the documents of the build's files in the order in which kustomize reads them.
func (b *builder) places() map[sought][]place {
	out := map[sought][]place{}
	for _, file := range b.c.resources {
		for _, d := range b.src.manifestAt(file).docs {
			key := sought{groupOf(d.APIVersion), d.Kind, d.Name}
			out[key] = append(out[key], place{d.Namespace, file})
		}
	}
	return out
}

func groupOf(apiVersion string) string {
	group, _, ok := strings.Cut(apiVersion, "/")
	if !ok {
		return ""
	}
	return group
}

// pick takes the n-th of some documents for the n-th of as many objects, or the only document, or the
// only one in the object's namespace.
func pick(found []place, objects, n int, namespace string, sorted bool) (string, bool) {
	same := func(list []place) bool {
		return !slices.ContainsFunc(list, func(p place) bool { return p.file != list[0].file })
	}
	if same(found) {
		return found[0].file, true
	}
	if len(found) == objects && !sorted {
		return found[n].file, true
	}
	found = slices.DeleteFunc(slices.Clone(found), func(p place) bool { return p.namespace != namespace })
	return first(found), len(found) > 0 && same(found)
}

func first(list []place) string {
	if len(list) == 0 {
		return ""
	}
	return list[0].file
}

// renamedNamespaces files the Namespaces whose name kustomize's namespace field replaces under the
// names that the objects bear, where there are as many of the one as of the other, or just one.
func (b *builder) renamedNamespaces(places map[sought][]place, keys []sought, count map[sought]int) {
	var renamed []sought
	for _, key := range keys {
		if key.kind == "Namespace" && key.group == "" && len(places[key]) == 0 {
			renamed = append(renamed, key)
		}
	}
	if len(renamed) == 0 {
		return
	}
	var from []place
	for _, file := range b.c.resources {
		for _, d := range b.src.manifestAt(file).docs {
			if d.Kind == "Namespace" && d.APIVersion == "v1" && count[sought{"", d.Kind, d.Name}] == 0 {
				from = append(from, place{file: file})
			}
		}
	}
	for i, key := range renamed {
		switch len(from) {
		case 1:
			places[key] = from
		case len(renamed):
			places[key] = from[i : i+1]
		}
	}
}

// generator finds the kustomization file whose generator makes an object.
func (b *builder) generator(key sought) (string, bool) {
	const hash = 11 // a dash and ten letters
	file, found := "", false
	for _, g := range b.c.generators {
		plain, hashed := key.name == g.Name, len(key.name) == len(g.Name)+hash && strings.HasPrefix(key.name, g.Name+"-")
		if key.group != "" || key.kind != g.Kind || !plain && !hashed {
			continue
		}
		if found && file != g.file {
			return "", false
		}
		file, found = g.file, true
	}
	return b.src.tree.Origin(file), found
}

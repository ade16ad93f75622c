package render

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	kustypes "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/yaml"
)

// schema guards kustomize's one OpenAPI schema for the process: builds share it, and one that
// changes it has it alone.
var schema sync.RWMutex //nolint:gochecknoglobals // kustomize's own state is global

// loadSchema parses the built-in schema once, before anything reads it: kustomize does not
// lock its reads, so it must not be parsed while builds run.
var loadSchema = sync.OnceFunc(func() { openapi.Schema() }) //nolint:gochecknoglobals // as above

// Prepare does now what the first build would do otherwise and takes a tenth of a second. It may be
// called beside builds.
func Prepare() { loadSchema() }

// kustomize builds with kustomize. Its origin annotations cost as much again as the build itself, so
// it first goes without them and asks what is written where; only where that does not tell is the
// build made again with them.
func (b *builder) kustomize(kus *kustypes.Kustomization, file string) ([]Object, error) {
	if !b.opts.AllowRemoteBases && !slices.Contains(b.keep, kustypes.OriginAnnotations) {
		bare := *kus
		bare.BuildMetadata = b.keep
		m, err := b.runKustomize(&bare, file)
		if err != nil {
			return nil, err
		}
		if files, ok := b.written(m.Resources(), kus.SortOptions != nil); ok {
			return b.objects(m.Resources(), files), nil
		}
	}
	m, err := b.runKustomize(kus, file)
	if err != nil {
		return nil, err
	}
	resources := m.Resources()
	files := make([]string, len(resources))
	for i, r := range resources {
		files[i] = b.origin(r.GetAnnotations()[originKey])
	}
	if !slices.Contains(b.keep, kustypes.OriginAnnotations) {
		if err := m.RemoveOriginAnnotations(); err != nil {
			b.fault(&BuildError{Dir: b.res.Dir, Err: err})
		}
	}
	return b.objects(resources, files), nil
}

func (b *builder) runKustomize(kus *kustypes.Kustomization, file string) (m resmap.ResMap, err error) {
	if err := b.inlineAliases(kus); err != nil {
		return nil, err
	}
	layer, err := b.layer(kus, file)
	if err != nil {
		return nil, err
	}
	v := &view{src: b.src, layer: layer}
	if b.opts.AllowRemoteBases {
		v.disk = filesys.MakeFsOnDisk()
	}
	defer func() {
		// Kustomize panics on some invalid objects.
		if r := recover(); r != nil {
			err = fmt.Errorf("recovered from kustomize build panic: %v", r)
		}
	}()
	loadSchema()
	if b.c.openapi {
		schema.Lock()
		defer schema.Unlock()
		resetSchema()
		defer resetSchema()
	} else {
		schema.RLock()
		defer schema.RUnlock()
	}
	k := krusty.MakeKustomizer(&krusty.Options{
		LoadRestrictions: kustypes.LoadRestrictionsNone,
		PluginConfig:     kustypes.DisabledPluginConfig(),
	})
	return k.Run(v, b.src.mounted(b.res.Dir))
}

// layer holds the kustomization files that differ from what the repository holds, by their paths.
func (b *builder) layer(top *kustypes.Kustomization, file string) (map[string][]byte, error) {
	out := map[string][]byte{}
	add := func(file string, kus *kustypes.Kustomization) error {
		data, err := yaml.Marshal(kus)
		out[file] = data
		return err
	}
	for dir, kus := range b.edited {
		if k := b.src.kustomization(dir); k != nil && dir != b.res.Dir {
			if err := add(k.file, kus); err != nil {
				return nil, err
			}
		}
	}
	return out, add(file, top)
}

func resetSchema() {
	openapi.ResetOpenAPI()
	openapi.Schema()
}

// objects converts kustomize's result; files tells where each object is from.
func (b *builder) objects(resources []*resource.Resource, files []string) []Object {
	out := make([]Object, 0, len(resources))
	for i, r := range resources {
		if r.GetName() == "" || r.GetKind() == "" || r.GetApiVersion() == "" {
			b.fault(&BuildError{Dir: b.res.Dir, File: files[i], Err: errors.New("an object without apiVersion, kind or name in " + files[i])})
			continue
		}
		data, err := r.MarshalJSON()
		if err != nil {
			line := b.src.line(files[i], r.GetApiVersion(), r.GetKind(), r.GetNamespace(), r.GetName())
			b.fault(&BuildError{Dir: b.res.Dir, File: files[i], Line: line, Err: err})
			continue
		}
		more, err := decode(data, files[i])
		if err != nil {
			b.fault(&BuildError{Dir: b.res.Dir, File: files[i], Err: err})
		}
		out = append(out, more...)
	}
	return out
}

// decode turns one object's JSON into objects, as ReadObjects of fluxcd/pkg/ssa utils/object.go does:
// lists are taken apart and kustomize's own kinds are dropped.
func decode(data []byte, file string) ([]Object, error) {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		return nil, err
	}
	if u.GroupVersionKind().Group == "kustomize.config.k8s.io" {
		return nil, nil
	}
	if !u.IsList() {
		return []Object{{Unstructured: u, File: file}}, nil
	}
	var out []Object
	err := u.EachListItem(func(item runtime.Object) error {
		out = append(out, Object{Unstructured: item.(*unstructured.Unstructured), File: file})
		return nil
	})
	return out, err
}

package render

import (
	"io/fs"
	"maps"
	"path"
	"slices"

	"sigs.k8s.io/kustomize/api/ifc"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/kv"
	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/kustomize/api/resource"
	kustypes "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"
)

// generate adds what the generators of a kustomization file make. It knows those that create.
func (d *assembly) generate(parts []*part, dir string, kus *kustypes.Kustomization) ([]*part, bool) {
	if len(kus.ConfigMapGenerator)+len(kus.SecretGenerator) == 0 {
		return parts, true
	}
	loader := kv.NewLoader(files{d.src, dir}, provider.NewDefaultDepProvider().GetFieldValidator())
	from := d.src.tree.Origin(d.kustomizationFileOf(dir))
	add := func(r *resource.Resource, err error) bool {
		if err != nil || known(parts, r.CurId()) {
			return false
		}
		parts = append(parts, &part{res: r, file: from})
		return true
	}
	for _, args := range kus.ConfigMapGenerator {
		args.Options = options(args.Options, kus.GeneratorOptions)
		if !creates(args.GeneratorArgs) || !add(d.src.factory.MakeConfigMap(loader, &args)) {
			return nil, false
		}
	}
	for _, args := range kus.SecretGenerator {
		args.Options = options(args.Options, kus.GeneratorOptions)
		if !creates(args.GeneratorArgs) || !add(d.src.factory.MakeSecret(loader, &args)) {
			return nil, false
		}
	}
	return parts, true
}

// known reports whether an object bears the identity of a generated one, or did before: kustomize then
// takes the two for one.
func known(parts []*part, id resid.ResId) bool {
	return slices.ContainsFunc(parts, func(p *part) bool { return p.ever(id.Equals) })
}

// options are a generator's own over those for all. Kustomize writes the latter into the former, which
// other builds read at the same time.
func options(own, all *kustypes.GeneratorOptions) *kustypes.GeneratorOptions {
	if own == nil || all == nil {
		return kustypes.MergeGlobalOptionsIntoLocal(own, all)
	}
	fresh := *own
	fresh.Labels, fresh.Annotations = maps.Clone(own.Labels), maps.Clone(own.Annotations)
	return kustypes.MergeGlobalOptionsIntoLocal(&fresh, all)
}

func creates(g kustypes.GeneratorArgs) bool {
	return (g.Behavior == "" || g.Behavior == "create") && g.EnvSource == ""
}

func (d *assembly) kustomizationFileOf(dir string) string {
	if file, ok := d.src.kustomizationFile(dir); ok {
		return file
	}
	return path.Join(dir, "kustomization.yaml")
}

// files reads the input of generators; its names are relative to dir.
type files struct {
	src *Source
	dir string
}

var _ ifc.Loader = files{}

func (f files) Repo() string { return "" }

func (f files) Root() string { return f.src.mounted(f.dir) }

func (f files) New(dir string) (ifc.Loader, error) { return files{f.src, path.Join(f.dir, dir)}, nil }

func (f files) Load(name string) ([]byte, error) {
	if slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(name)) {
		// The controller writes the file anew.
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrInvalid}
	}
	full, err := (&view{src: f.src}).name(path.Join(f.Root(), name))
	if err != nil {
		return nil, err
	}
	data, err := f.src.read(full)
	return slices.Clone(data), err
}

func (f files) Cleanup() error { return nil }

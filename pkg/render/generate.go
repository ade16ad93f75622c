package render

import (
	"io/fs"
	"path"
	"slices"

	"sigs.k8s.io/kustomize/api/ifc"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/kv"
	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/kustomize/api/resource"
	kustypes "sigs.k8s.io/kustomize/api/types"
)

// generate adds what the generators of a kustomization file make. It knows those that create.
func (d *assembly) generate(parts []*part, dir string, kus *kustypes.Kustomization) ([]*part, bool) {
	if len(kus.ConfigMapGenerator)+len(kus.SecretGenerator) == 0 {
		return parts, true
	}
	loader := kv.NewLoader(files{d.src, dir}, provider.NewDefaultDepProvider().GetFieldValidator())
	from := d.src.tree.Origin(d.kustomizationFileOf(dir))
	add := func(r *resource.Resource, err error) bool {
		if err != nil {
			return false
		}
		parts = append(parts, &part{res: r, file: from})
		return true
	}
	for _, args := range kus.ConfigMapGenerator {
		args.Options = kustypes.MergeGlobalOptionsIntoLocal(args.Options, kus.GeneratorOptions)
		if !creates(args.GeneratorArgs) || !add(d.src.factory.MakeConfigMap(loader, &args)) {
			return nil, false
		}
	}
	for _, args := range kus.SecretGenerator {
		args.Options = kustypes.MergeGlobalOptionsIntoLocal(args.Options, kus.GeneratorOptions)
		if !creates(args.GeneratorArgs) || !add(d.src.factory.MakeSecret(loader, &args)) {
			return nil, false
		}
	}
	return parts, true
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

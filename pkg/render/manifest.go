package render

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"

	fluxkustomize "github.com/fluxcd/pkg/apis/kustomize"
	generator "github.com/fluxcd/pkg/kustomize"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/konfig"
	kustypes "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"
)

// overlay is the part of a Kustomization's spec that ends up in its kustomization.yaml. The two
// patch fields at the end left the API with v1; v1beta1 and v1beta2 manifests still carry them.
type overlay struct {
	TargetNamespace         string                        `json:"targetNamespace,omitempty"`
	NamePrefix              string                        `json:"namePrefix,omitempty"`
	NameSuffix              string                        `json:"nameSuffix,omitempty"`
	Patches                 []fluxkustomize.Patch         `json:"patches,omitempty"`
	Components              []string                      `json:"components,omitempty"`
	IgnoreMissingComponents bool                          `json:"ignoreMissingComponents,omitempty"`
	Images                  []fluxkustomize.Image         `json:"images,omitempty"`
	BuildMetadata           []string                      `json:"buildMetadata,omitempty"`
	PatchesStrategicMerge   []apiextensionsv1.JSON        `json:"patchesStrategicMerge,omitempty"`
	PatchesJSON6902         []fluxkustomize.JSON6902Patch `json:"patchesJson6902,omitempty"`
}

func overlayOf(ks *unstructured.Unstructured) (overlay, error) {
	var o overlay
	spec, ok := ks.Object["spec"].(map[string]any)
	if !ok {
		return o, nil
	}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &o)
	return o, err
}

// manifest returns the kustomization.yaml that the controller builds dir with, parsed, and the
// repository path it takes. keep lists the buildMetadata that the result really asks for.
//
// It is GenerateManifest of fluxcd/pkg/kustomize kustomize_generator.go, which reads the operating
// system's files only; a test compares the two.
func (s *Source) manifest(dir string, o overlay) (kus *kustypes.Kustomization, file string, keep []string, err error) {
	file, found := s.kustomizationFile(dir)
	kus = &kustypes.Kustomization{TypeMeta: kustypes.TypeMeta{
		APIVersion: kustypes.KustomizationVersion,
		Kind:       kustypes.KustomizationKind,
	}}
	if found {
		data, err := s.tree.ReadFile(file)
		if err != nil {
			return nil, file, nil, err
		}
		if err := yaml.Unmarshal(data, kus); err != nil {
			return nil, file, nil, &FileError{File: file, Line: errorLine(err, data), Err: err}
		}
		if len(kus.Resources) == 0 {
			kus.BuildMetadata = []string{kustypes.OriginAnnotations}
		}
	} else {
		file = path.Join(dir, konfig.DefaultKustomizationFileName())
		if kus.Resources, err = s.scan(dir, dir); err != nil {
			return nil, file, nil, err
		}
		if len(kus.Resources) == 0 {
			kus.Namespace = "_placeholder"
		}
	}
	if err := s.extend(kus, dir, o); err != nil {
		return nil, file, nil, err
	}
	keep = kus.BuildMetadata
	if !slices.Contains(keep, kustypes.OriginAnnotations) {
		kus.BuildMetadata = append(slices.Clone(keep), kustypes.OriginAnnotations)
	}
	return kus, file, keep, nil
}

// kustomizationFile returns the path of the folder's kustomization file.
func (s *Source) kustomizationFile(dir string) (string, bool) {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if p := path.Join(dir, name); s.isFile(p) {
			return p, true
		}
	}
	return "", false
}

// kustomizationFiles lists the folder's kustomization files: kustomize refuses more than one.
func (s *Source) kustomizationFiles(dir string) []string {
	var files []string
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if file := path.Join(dir, name); s.isFile(file) {
			files = append(files, file)
		}
	}
	return files
}

// scan lists what a generated kustomization.yaml holds: every YAML file below dir, and every folder
// with a kustomization file of its own in place of what is below it. Symbolic links are not in an artifact.
func (s *Source) scan(root, dir string) ([]string, error) {
	entries, err := s.tree.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		rel := "./" + relTo(root, name)
		switch ext := path.Ext(e.Name); {
		case e.IsDir():
			if _, ok := s.kustomizationFile(name); ok {
				out = append(out, rel)
				continue
			}
			more, err := s.scan(root, name)
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		case e.Mode != 0 || (ext != ".yaml" && ext != ".yml") || s.ignored(name, false):
		default:
			out = append(out, rel)
		}
	}
	return out, nil
}

func relTo(root, name string) string {
	if root == "." {
		return name
	}
	return name[len(root)+1:]
}

// extend adds the spec's fields to a kustomization.yaml.
func (s *Source) extend(kus *kustypes.Kustomization, dir string, o overlay) error {
	if o.TargetNamespace != "" {
		kus.Namespace = o.TargetNamespace
	}
	if o.NamePrefix != "" {
		kus.NamePrefix = o.NamePrefix
	}
	if o.NameSuffix != "" {
		kus.NameSuffix = o.NameSuffix
	}
	for _, p := range o.Patches {
		kus.Patches = append(kus.Patches, kustypes.Patch{Patch: p.Patch, Target: selector(p.Target)})
	}
	for _, c := range o.Components {
		if !generator.IsLocalRelativePath(c) {
			return fmt.Errorf("component path '%s' must be local and relative", c)
		}
		if p := path.Join(dir, c); o.IgnoreMissingComponents && !s.isDir(p) && !s.isFile(p) {
			continue
		}
		kus.Components = append(kus.Components, c)
	}
	for _, p := range o.PatchesStrategicMerge {
		kus.PatchesStrategicMerge = append(kus.PatchesStrategicMerge, kustypes.PatchStrategicMerge(p.Raw))
	}
	for _, p := range o.PatchesJSON6902 {
		patch, err := json.Marshal(p.Patch)
		if err != nil {
			return err
		}
		kus.PatchesJson6902 = append(kus.PatchesJson6902, kustypes.Patch{Patch: string(patch), Target: selector(&p.Target)})
	}
	for _, image := range o.Images {
		kus.Images = mergeImage(kus.Images, image)
	}
	if len(o.BuildMetadata) > 0 {
		kus.BuildMetadata = o.BuildMetadata
	}
	return nil
}

// mergeImage overrides field by field, tag and digest as one.
func mergeImage(images []kustypes.Image, image fluxkustomize.Image) []kustypes.Image {
	i := slices.IndexFunc(images, func(k kustypes.Image) bool { return k.Name == image.Name })
	if i < 0 {
		return append(images, kustypes.Image{Name: image.Name, NewName: image.NewName, NewTag: image.NewTag, Digest: image.Digest})
	}
	if image.NewName != "" {
		images[i].NewName = image.NewName
	}
	if image.NewTag != "" || image.Digest != "" {
		images[i].NewTag, images[i].Digest = image.NewTag, image.Digest
	}
	return images
}

func selector(s *fluxkustomize.Selector) *kustypes.Selector {
	if s == nil {
		return nil
	}
	out := &kustypes.Selector{LabelSelector: s.LabelSelector, AnnotationSelector: s.AnnotationSelector}
	out.Group, out.Version, out.Kind = s.Group, s.Version, s.Kind
	out.Name, out.Namespace = s.Name, s.Namespace
	return out
}

package render

import (
	"path"

	"sigs.k8s.io/kustomize/api/filters/annotations"
	"sigs.k8s.io/kustomize/api/filters/labels"
	"sigs.k8s.io/kustomize/api/konfig"
	kustypes "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/yaml"
)

// transformer is the configuration of a built-in transformer as the files hold it that the field
// transformers names.
type transformer struct {
	APIVersion  string            `json:"apiVersion"`
	Kind        string            `json:"kind"`
	Annotations map[string]string `json:"annotations"`
	Labels      map[string]string `json:"labels"`
	FieldSpecs  kustypes.FsSlice  `json:"fieldSpecs"`
}

// filter is what the transformer does to each object; false for one that is not known here.
func (t transformer) filter() (kio.Filter, bool) {
	if t.APIVersion != konfig.BuiltinPluginApiVersion {
		return nil, false
	}
	switch t.Kind {
	case "AnnotationsTransformer":
		return annotations.Filter{Annotations: t.Annotations, FsSlice: t.FieldSpecs}, len(t.Annotations) > 0
	case "LabelTransformer":
		return labels.Filter{Labels: t.Labels, FsSlice: t.FieldSpecs}, len(t.Labels) > 0
	}
	return nil, false
}

// configured applies the transformers that a kustomization file names. It knows those in files that
// set annotations or labels.
func (d *assembly) configured(parts []*part, dir string, refs []string) bool {
	var all []*part
	var filters []kio.Filter
	for _, ref := range refs {
		name := path.Join(dir, ref)
		if !d.src.isFile(name) {
			return false
		}
		configs, ok := d.file(name)
		if !ok {
			return false
		}
		for _, c := range configs {
			var t transformer
			text, err := c.res.AsYAML()
			if err != nil || yaml.Unmarshal(text, &t) != nil {
				return false
			}
			f, ok := t.filter()
			if !ok {
				return false
			}
			filters = append(filters, f)
		}
		all = append(all, configs...)
	}
	return distinct(all) && each(len(parts), func(i int) bool {
		for _, f := range filters {
			if parts[i].res.ApplyFilter(f) != nil {
				return false
			}
		}
		return true
	})
}

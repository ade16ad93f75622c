package render

import (
	"bytes"
	"slices"
	"strconv"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resource"
	kustypes "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// transform has kustomize do what direct does not know itself, and what concerns each object alone:
// labels that go into selectors, annotations, images and replicas.
func (d *assembly) transform(parts []*part, kus *kustypes.Kustomization) bool {
	k := kustypes.Kustomization{
		Labels: kus.Labels, CommonAnnotations: kus.CommonAnnotations, Images: kus.Images, Replicas: kus.Replicas,
	}
	if len(kus.CommonLabels) > 0 {
		// The same, without the note on stderr that the field is deprecated.
		k.Labels = append(k.Labels[:len(k.Labels):len(k.Labels)], kustypes.Label{Pairs: kus.CommonLabels, IncludeSelectors: true})
	}
	if len(k.CommonAnnotations)+len(k.Images)+len(k.Replicas) == 0 && metadataOnly(k.Labels) {
		return setLabels(parts, k.Labels)
	}
	if len(parts) == 0 && len(k.Replicas) > 0 {
		// Kustomize takes no replicas for what is not there.
		return false
	}
	give := func(p *part) (*resource.Resource, error) {
		r := p.res.DeepCopy()
		r.RemoveBuildAnnotations()
		return r, nil
	}
	for chunk := range slices.Chunk(parts, chunkSize) {
		built, ok := d.alone(chunk, k, give, nil)
		if !ok {
			return false
		}
		for i, r := range built {
			if chunk[i].res.NeedHashSuffix() {
				r.EnableHashSuffix()
			}
			chunk[i].res = r
		}
	}
	return true
}

// chunkSize is how many objects kustomize is given at once where each is on its own: it compares all
// with all.
const chunkSize = 200

// alone builds objects with kustomize in a folder of their own, with the settings of kus and files of
// configuration. give is how kustomize is to see them. What is built is in the order of parts.
func (d *assembly) alone(parts []*part, kus kustypes.Kustomization, give func(*part) (*resource.Resource, error),
	configurations []string,
) ([]*resource.Resource, bool) {
	if len(parts) == 0 {
		return nil, true
	}
	fs := filesys.MakeFsInMemory()
	kus.Resources = []string{"objects.yaml"}
	for i, file := range configurations {
		name := "configuration-" + strconv.Itoa(i) + ".yaml"
		data, err := d.src.tree.ReadFile(file)
		if err != nil || fs.WriteFile("/"+name, data) != nil {
			return nil, false
		}
		kus.Configurations = append(kus.Configurations, name)
	}
	objects, ok := yamlOf(parts, give)
	data, err := yaml.Marshal(kus)
	if !ok || err != nil || fs.WriteFile("/kustomization.yaml", data) != nil || fs.WriteFile("/objects.yaml", objects) != nil {
		return nil, false
	}
	m, err := krusty.MakeKustomizer(&krusty.Options{PluginConfig: kustypes.DisabledPluginConfig()}).Run(fs, "/")
	if err != nil || m.Size() != len(parts) {
		return nil, false
	}
	return m.Resources(), true
}

// yamlOf is the YAML of some objects. Kustomize's writer does not always keep folded scalars: that
// changes nothing where it writes once, here or at the end, but a hash is made of what was read.
func yamlOf(parts []*part, give func(*part) (*resource.Resource, error)) ([]byte, bool) {
	var out bytes.Buffer
	for _, p := range parts {
		if p.res.NeedHashSuffix() && folded(p.res.YNode()) {
			return nil, false
		}
		r, err := give(p)
		if err != nil {
			return nil, false
		}
		text, err := r.AsYAML()
		if err != nil {
			return nil, false
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	return out.Bytes(), true
}

package render

import (
	"path"
	"slices"

	kustypes "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"
)

// rename gives generated objects the hash in their names, and has the references to them follow. Only
// these objects matter to it, and those that hold one of the names: kustomize builds a folder of
// nothing else.
func (d *assembly) rename(parts []*part) bool {
	names := map[string]bool{}
	files := d.configurations()
	for _, p := range parts {
		if p.res.NeedHashSuffix() || len(files) > 0 && len(p.before) > 0 && isInput(p.res.GetKind()) {
			names[p.res.GetName()] = true
		}
	}
	if len(names) == 0 {
		return true
	}
	var few []*part
	for _, p := range parts {
		if !p.ever(func(id resid.ResId) bool { return names[id.Name] }) && !holdsScalar(p.res.YNode(), names) {
			continue
		}
		if slices.ContainsFunc(references(), func(r reference) bool { return r.in.Kind == p.res.GetKind() }) {
			return false
		}
		few = append(few, p)
	}
	built, ok := d.alone(few, kustypes.Kustomization{}, (*part).noted, files)
	for i, r := range built {
		few[i].res = r
	}
	return ok
}

func holdsScalar(n *kyaml.Node, values map[string]bool) bool {
	return n.Kind == kyaml.ScalarNode && values[n.Value] ||
		slices.ContainsFunc(n.Content, func(c *kyaml.Node) bool { return holdsScalar(c, values) })
}

// configurations lists the files that the build's kustomization files give as such, each once.
func (d *assembly) configurations() []string {
	var out []string
	for _, k := range d.c.kustomizations {
		for _, ref := range d.asEdited(k).Configurations {
			if name := path.Join(k.dir, ref); !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// namesOnly reports whether a configuration only says where names of ConfigMaps and Secrets are held.
// Kustomize then has use for it at the end of a build, and not before.
func (s *Source) namesOnly(file string) bool {
	data, err := s.tree.ReadFile(file)
	if err != nil {
		return false
	}
	var c struct {
		NameReference []struct {
			FieldSpecs []kustypes.FieldSpec `json:"fieldSpecs"`
			Kind       string               `json:"kind"`
			Version    string               `json:"version"`
			Group      string               `json:"group"`
		} `json:"nameReference"`
	}
	if yaml.UnmarshalStrict(data, &c) != nil {
		return false
	}
	for _, r := range c.NameReference {
		if !isInput(r.Kind) {
			return false
		}
	}
	return true
}

func isInput(kind string) bool { return kind == "ConfigMap" || kind == "Secret" }

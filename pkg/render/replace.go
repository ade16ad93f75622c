package render

import (
	"path"

	"sigs.k8s.io/kustomize/api/filters/replacement"
	kustypes "sigs.k8s.io/kustomize/api/types"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"
)

// replace copies values between objects as kustomize's ReplacementTransformer does, which selects
// objects by what they were called before, too.
func (d *assembly) replace(parts []*part, dir string, fields []kustypes.ReplacementField) bool {
	if len(fields) == 0 {
		return true
	}
	var all []kustypes.Replacement
	for _, f := range fields {
		more, ok := d.replacements(dir, f)
		if !ok {
			return false
		}
		all = append(all, more...)
	}
	nodes := make([]*kyaml.RNode, len(parts))
	for i, p := range parts {
		r, err := p.noted()
		if err != nil {
			return false
		}
		p.res, nodes[i] = r, &r.RNode
	}
	if _, err := (replacement.Filter{Replacements: all}).Filter(nodes); err != nil {
		return false
	}
	for _, p := range parts {
		hashed := p.res.NeedHashSuffix()
		p.res.RemoveBuildAnnotations()
		if hashed {
			p.res.EnableHashSuffix()
		}
	}
	return true
}

// replacements reads an entry of the replacements: one, or a file that holds one or a list.
func (d *assembly) replacements(dir string, f kustypes.ReplacementField) ([]kustypes.Replacement, bool) {
	if f.Path == "" {
		return []kustypes.Replacement{f.Replacement}, true
	}
	if f.Source != nil || len(f.Targets) > 0 {
		return nil, false
	}
	data, err := d.src.tree.ReadFile(path.Join(dir, f.Path))
	if err != nil || reserved(data) {
		return nil, false
	}
	var list []kustypes.Replacement
	if yaml.Unmarshal(data, &list) == nil {
		return list, true
	}
	var one kustypes.Replacement
	err = yaml.Unmarshal(data, &one)
	return []kustypes.Replacement{one}, err == nil
}

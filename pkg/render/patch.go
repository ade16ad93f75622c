package render

import (
	"path"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/filters/patchjson6902"
	"sigs.k8s.io/kustomize/api/resource"
	kustypes "sigs.k8s.io/kustomize/api/types"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
)

// Patch applies those of kustomize's patches to an object that select it, as a build with this object
// and others does. What selects another object or cannot be applied changes nothing.
func Patch(object *unstructured.Unstructured, patches []kustypes.Patch) *unstructured.Unstructured {
	data, err := object.MarshalJSON()
	if err != nil || len(patches) == 0 {
		return object
	}
	src := &Source{factory: newFactory()}
	nodes, err := nodesOf(src.factory, data)
	if err != nil || len(nodes) != 1 {
		return object
	}
	loadSchema()
	schema.RLock()
	defer schema.RUnlock()
	now := &part{res: &resource.Resource{RNode: *nodes[0]}}
	for _, p := range patches {
		next := &part{res: now.res.DeepCopy()}
		if out, ok := (&assembly{&builder{src: src}}).tryPatch(next, p); ok && len(out) == 1 {
			now = next
		}
	}
	if patched, ok := now.object(); ok {
		return patched
	}
	return object
}

// tryPatch patches one object; kustomize's filters panic on some invalid patches.
func (d *assembly) tryPatch(one *part, p kustypes.Patch) (out []*part, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	if p.Path != "" {
		return nil, false
	}
	return d.patch([]*part{one}, "", p)
}

// patch applies one entry of the patches as kustomize's PatchTransformer does.
func (d *assembly) patch(parts []*part, dir string, p kustypes.Patch) ([]*part, bool) {
	text := strings.TrimSpace(p.Patch)
	if p.Options != nil || (text == "") == (p.Path == "") {
		return nil, false
	}
	if p.Path != "" {
		data, err := d.src.tree.ReadFile(path.Join(dir, p.Path))
		if err != nil {
			return nil, false
		}
		text = string(data)
	}
	if reserved([]byte(text)) {
		return nil, false
	}
	if isOperations(text) {
		return parts, p.Target != nil && operate(parts, p.Target, text)
	}
	t := d.src.patchText(text)
	ok := t.ok
	switch {
	case !ok:
	case p.Target == nil:
		ok = mergeByName(parts, t.whole)
	default:
		ok = len(t.clean) == 1 && mergeSelected(parts, p.Target, t.clean[0])
	}
	return present(parts, ok)
}

// patchByName applies one entry of the patchesStrategicMerge, a text or the name of a file, as kustomize's
// PatchStrategicMergeTransformer does.
func (d *assembly) patchByName(parts []*part, dir, entry string) ([]*part, bool) {
	text := entry
	if !inline(entry) {
		data, err := d.src.tree.ReadFile(path.Join(dir, entry))
		if err != nil {
			return nil, false
		}
		text = string(data)
	}
	if reserved([]byte(text)) {
		return nil, false
	}
	t := d.src.patchText(text)
	return present(parts, t.ok && mergeByName(parts, t.clean))
}

// present leaves out what patches have deleted.
func present(parts []*part, ok bool) ([]*part, bool) {
	return slices.DeleteFunc(parts, func(p *part) bool { return p.res.IsNilOrEmpty() }), ok
}

// isOperations tells a list of JSON patch operations from a strategic merge patch.
func isOperations(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && line != "---" && !strings.HasPrefix(line, "#") {
			return strings.HasPrefix(line, "[") || line == "-" || strings.HasPrefix(line, "- ")
		}
	}
	return false
}

// patchText is a strategic merge patch, parsed once however many builds use it. Nobody may change it.
type patchText struct {
	once sync.Once
	ok   bool
	// whole is the patch as written, clean as ApplySmPatch of kustomize's resmap makes of it.
	whole, clean []*smPatch
}

// smPatch is one strategic merge patch.
type smPatch struct {
	*resource.Resource
	simple bool
}

func (s *Source) patchText(text string) *patchText {
	v, ok := s.patches.Load(text)
	if !ok {
		v, _ = s.patches.LoadOrStore(text, &patchText{})
	}
	t := v.(*patchText)
	t.once.Do(func() {
		nodes, err := nodesOf(s.factory, []byte(text))
		if err != nil || len(nodes) == 0 {
			return
		}
		for _, n := range nodes {
			if n.YNode().Kind != kyaml.MappingNode {
				return
			}
			r := &resource.Resource{RNode: *n}
			clean := r.DeepCopy()
			if clean.CopyMergeMetaDataFieldsFrom(r) != nil {
				return
			}
			t.whole = append(t.whole, &smPatch{r, isSimple(r)})
			t.clean = append(t.clean, &smPatch{clean, isSimple(clean)})
		}
		t.ok = true
	})
	return t
}

// mergeByName merges each patch into the one object that it names, which may bear the name no more.
func mergeByName(parts []*part, patches []*smPatch) bool {
	for _, patch := range patches {
		id := patch.OrgId()
		var found []*part
		for _, p := range parts {
			if p.ever(id.Equals) {
				found = append(found, p)
			}
		}
		if len(found) != 1 {
			return false
		}
		res := found[0].res
		if res.GetGvk() == patch.GetGvk() && patch.simple && mergeSimply(res, patch.Resource) {
			continue
		}
		if res.ApplySmPatch(patch.DeepCopy()) != nil {
			return false
		}
	}
	return true
}

// mergeSelected merges a patch into all objects that a target selects.
func mergeSelected(parts []*part, target *kustypes.Selector, patch *smPatch) bool {
	chosen, ok := selected(parts, target)
	if !ok {
		return false
	}
	return each(len(chosen), func(i int) bool {
		res := chosen[i].res
		if patch.simple && mergeSimply(res, patch.Resource) {
			return true
		}
		own := patch.DeepCopy()
		own.SetGvk(res.GetGvk())
		own.SetKind(patch.GetKind())
		return res.ApplySmPatch(own) == nil
	})
}

// operate applies JSON patch operations to all objects that a target selects.
func operate(parts []*part, target *kustypes.Selector, text string) bool {
	chosen, ok := selected(parts, target)
	if !ok {
		return false
	}
	return each(len(chosen), func(i int) bool {
		chosen[i].remember()
		res := chosen[i].res
		hashed := res.NeedHashSuffix()
		if res.ApplyFilter(patchjson6902.Filter{Patch: text}) != nil {
			return false
		}
		if hashed {
			// Kustomize keeps this note for itself through a patch that writes all annotations anew.
			res.EnableHashSuffix()
		}
		return true
	})
}

// selected is Select of kustomize's api/resmap/reswrangler.go.
func selected(parts []*part, target *kustypes.Selector) ([]*part, bool) {
	sr, err := kustypes.NewSelectorRegex(target)
	if err != nil {
		return nil, false
	}
	var out []*part
	for _, p := range parts {
		now, org := p.res.CurId(), p.original()
		if !sr.MatchGvk(now.Gvk) ||
			!sr.MatchNamespace(org.EffectiveNamespace()) && !sr.MatchNamespace(now.EffectiveNamespace()) ||
			!sr.MatchName(org.Name) && !sr.MatchName(now.Name) {
			continue
		}
		labels, err := p.res.MatchesLabelSelector(target.LabelSelector)
		if err != nil {
			return nil, false
		}
		annotations, err := p.res.MatchesAnnotationSelector(target.AnnotationSelector)
		if err != nil {
			return nil, false
		}
		if labels && annotations {
			out = append(out, p)
		}
	}
	return out, true
}

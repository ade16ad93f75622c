package tiers

import (
	"cmp"
	"fmt"
	"hash/adler32"
	"maps"
	"slices"
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/standup-sh/standup/pkg/render"
)

// maxPermutations is how many sets of inputs Flux Operator makes at most (internal/inputs/permuter.go).
const maxPermutations = 10000

// provider is one that gives sets of inputs: the ResourceSet itself, or a ResourceSetInputProvider.
type provider struct {
	name string
	sets []map[string]any
}

// inputs lists the sets of inputs, one element for each expansion; one nil set if there are none at
// all. The order and the two strategies are those of Combine in Flux Operator's
// internal/inputs/combine.go: the ResourceSet first, then its providers by name.
func (l *loader) inputs(o render.Object) ([]map[string]any, error) {
	spec := nested(o.Object, "spec")
	list, _ := spec["inputs"].([]any)
	from, _ := spec["inputsFrom"].([]any)
	if len(list) == 0 && len(from) == 0 {
		return []map[string]any{nil}, nil
	}
	own := provider{name: o.GetName()}
	for _, in := range list {
		if m, ok := in.(map[string]any); ok {
			own.sets = append(own.sets, withProvider(m, o))
		}
	}
	found := map[string]render.Object{}
	for _, f := range from {
		ref, _ := f.(map[string]any)
		selected, err := l.selectProviders(o.GetNamespace(), ref)
		if err != nil {
			return nil, err
		}
		for _, p := range selected {
			found[p.GetName()] = p
		}
	}
	providers := []provider{own}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		sets, err := static(found[name])
		if err != nil {
			return nil, err
		}
		providers = append(providers, provider{name: name, sets: sets})
	}
	strategy := nested(spec, "inputStrategy")
	switch name, _ := strategy["name"].(string); name {
	case "", "Flatten":
		var sets []map[string]any
		for _, p := range providers {
			sets = append(sets, p.sets...)
		}
		return sets, nil
	case "Permute":
		empty, _ := strategy["includeEmptyProviders"].(bool)
		return permute(providers, empty)
	default:
		return nil, fmt.Errorf("its input strategy %q is unknown", name)
	}
}

// selectProviders finds the ResourceSetInputProviders in git that an entry of inputsFrom names or
// selects by label.
func (l *loader) selectProviders(namespace string, ref map[string]any) ([]render.Object, error) {
	if name, _ := ref["name"].(string); name != "" {
		p, ok := l.providers[Key{Namespace: namespace, Name: name}]
		if !ok {
			return nil, fmt.Errorf("ResourceSetInputProvider/%s/%s is not in git", namespace, name)
		}
		return []render.Object{p}, nil
	}
	var by metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(nested(ref, "selector"), &by); err != nil {
		return nil, fmt.Errorf("reading its selector: %w", err)
	}
	selector, err := metav1.LabelSelectorAsSelector(&by)
	if err != nil {
		return nil, fmt.Errorf("reading its selector: %w", err)
	}
	var selected []render.Object
	for key, p := range l.providers {
		if key.Namespace == namespace && selector.Matches(labels.Set(p.GetLabels())) {
			selected = append(selected, p)
		}
	}
	if len(selected) == 0 {
		return nil, fmt.Errorf("no ResourceSetInputProvider in git has the labels %s", selector)
	}
	slices.SortFunc(selected, func(a, b render.Object) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return selected, nil
}

// static reads a static ResourceSetInputProvider; the others ask services.
func static(p render.Object) ([]map[string]any, error) {
	spec := nested(p.Object, "spec")
	if kind, _ := spec["type"].(string); kind != "Static" {
		return nil, fmt.Errorf("%s asks a service of type %s", p.ID(), kind)
	}
	return []map[string]any{withProvider(nested(spec, "defaultValues"), p)}, nil
}

// withProvider gives a set of inputs what Flux Operator adds to each: whose it is.
func withProvider(set map[string]any, o render.Object) map[string]any {
	values := maps.Clone(set)
	if values == nil {
		values = map[string]any{}
	}
	values["provider"] = map[string]any{
		"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(), "name": o.GetName(), "namespace": o.GetNamespace(),
	}
	return values
}

// permute combines each set of one provider with each of all others, the last provider's changing
// fastest. In a combination a provider's set is found under its name, and "id" names the combination
// (Flux Operator's internal/inputs/permuter.go and id.go). Providers without inputs are left out,
// unless they are to count: then there is no combination.
func permute(providers []provider, countEmpty bool) ([]map[string]any, error) {
	type partial struct {
		set map[string]any
		id  []string
	}
	combined := []partial{{set: map[string]any{}}}
	used := 0
	for _, p := range providers {
		if len(p.sets) == 0 && !countEmpty {
			continue
		}
		name := templateKey(p.name)
		if name == "" {
			return nil, fmt.Errorf("the name of its input provider %q has no letter or digit", p.name)
		}
		if len(combined)*len(p.sets) > maxPermutations {
			return nil, fmt.Errorf("its inputs have more than %d combinations", maxPermutations)
		}
		used++
		var next []partial
		for _, c := range combined {
			for i, set := range p.sets {
				more := maps.Clone(c.set)
				more[name] = set
				next = append(next, partial{more, append(slices.Clone(c.id), fmt.Sprintf("%s=%d", name, i))})
			}
		}
		combined = next
	}
	if used == 0 {
		return nil, nil
	}
	sets := make([]map[string]any, 0, len(combined))
	for _, c := range combined {
		c.set["id"] = fmt.Sprint(adler32.Checksum([]byte(strings.Join(c.id, "/"))))
		sets = append(sets, c.set)
	}
	return sets, nil
}

// templateKey makes of a provider's name what templates call it: lower case, with one underscore for
// spaces and punctuation, none at the ends, and nothing but letters and digits of ASCII beside it
// (Flux Operator's internal/inputs/keys.go).
func templateKey(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsPunct(r) })
	var kept []string
	for _, w := range words {
		w = strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
				return r
			}
			return -1
		}, w)
		if w != "" {
			kept = append(kept, w)
		}
	}
	return strings.Join(kept, "_")
}

package tiers

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/standup-sh/standup/pkg/render"
)

// HelmRelease is a release that a tier applies, with its own order among releases.
type HelmRelease struct {
	Key
	// DependsOn lists spec.dependsOn with namespaces filled in: names of other HelmReleases.
	DependsOn []Key
	Suspend   bool
	File      string
	Line      int
}

func (l *loader) addRelease(s *state, o render.Object) {
	k := Key{Namespace: o.GetNamespace(), Name: o.GetName()}
	if _, ok := l.charts[k]; ok {
		return
	}
	l.charts[k] = o
	if !l.opts.HelmReleases {
		return
	}
	r := HelmRelease{Key: k, File: o.File, Line: o.Line}
	r.Suspend, _, _ = unstructured.NestedBool(o.Object, "spec", "suspend")
	deps, _, _ := unstructured.NestedSlice(o.Object, "spec", "dependsOn")
	for _, d := range deps {
		m, _ := d.(map[string]any)
		dep := Key{Namespace: k.Namespace}
		dep.Name, _ = m["name"].(string)
		if ns, _ := m["namespace"].(string); ns != "" {
			dep.Namespace = ns
		}
		r.DependsOn = append(r.DependsOn, dep)
	}
	s.tier.HelmReleases = append(s.tier.HelmReleases, r)
	slices.SortFunc(s.tier.HelmReleases, func(a, b HelmRelease) int { return compareKeys(a.Key, b.Key) })
}

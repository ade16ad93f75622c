package crds

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/render"
)

// ChartKind is one kind that a rendered chart defines.
type ChartKind struct {
	schema.GroupKind
	Plural   string
	Versions []string
}

// Rendered holds what the charts of releases were found to define, by release. A release that is
// not in it was not rendered.
type Rendered struct {
	kinds map[objectKey][]ChartKind
}

// NewRendered returns an empty set.
func NewRendered() *Rendered { return &Rendered{kinds: map[objectKey][]ChartKind{}} }

// Add records what the chart of a release defines: CRDs among the chart's objects.
func (r *Rendered) Add(release render.Object, definitions []render.Object) {
	key := keyOf(release)
	r.kinds[key] = []ChartKind{}
	for _, d := range definitions {
		if kind, versions := definition(d); isCRD(d) {
			r.kinds[key] = append(r.kinds[key], ChartKind{kind.GroupKind, kind.plural, versions})
		}
	}
}

func (r *Rendered) of(release render.Object) ([]ChartKind, bool) {
	if r == nil {
		return nil, false
	}
	kinds, ok := r.kinds[keyOf(release)]
	return kinds, ok
}

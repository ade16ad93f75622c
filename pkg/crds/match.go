package crds

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/render"
)

// matches reports whether an object is what a trigger asks for.
func (t *Trigger) matches(o render.Object) bool {
	gvk := o.GroupVersionKind()
	if t == nil || gvk.Group != t.Group || gvk.Kind != t.Kind {
		return false
	}
	return t.Where.holds(o)
}

func (w *Where) holds(o render.Object) bool {
	if w == nil {
		return true
	}
	fields := strings.Split(w.Path, ".")
	if list, found, err := unstructured.NestedStringSlice(o.Object, fields...); found && err == nil {
		return w.pattern.MatchString(strings.Join(list, " "))
	}
	return w.pattern.MatchString(text(o, fields...))
}

// runsRelease reports whether a release installs the controller.
func (r *Runner) runsRelease(rel release) bool {
	return r != nil && rel.chart != "" && slices.Contains(r.Charts, rel.chart)
}

// runsWorkload reports whether an object is a workload that runs the controller.
func (r *Runner) runsWorkload(o render.Object) bool {
	if r == nil || !isWorkload(o) {
		return false
	}
	if slices.Contains(r.Workloads, o.GetName()) {
		return true
	}
	return slices.ContainsFunc(images(o), func(image string) bool { return slices.Contains(r.Images, image) })
}

func isWorkload(o render.Object) bool {
	gk := o.GroupVersionKind().GroupKind()
	return gk.Group == "apps" && (gk.Kind == "Deployment" || gk.Kind == "StatefulSet" || gk.Kind == "DaemonSet")
}

// images lists the repositories of a workload's images, without registry, tag and digest.
func images(o render.Object) []string {
	var found []string
	for _, list := range []string{"containers", "initContainers"} {
		containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", list)
		for _, c := range containers {
			container, ok := c.(map[string]any)
			if !ok {
				continue
			}
			if image, ok := container["image"].(string); ok {
				found = append(found, repository(image))
			}
		}
	}
	return found
}

func repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if colon := strings.LastIndexByte(image, ':'); colon > strings.LastIndexByte(image, '/') {
		image = image[:colon]
	}
	if host, rest, ok := strings.Cut(image, "/"); ok && strings.ContainsAny(host, ".:") {
		return rest
	}
	return image
}

// createdKind is one kind, or "*", in a group that may begin with "*.".
type createdKind struct {
	schema.GroupKind
	plural string
}

// created lists what a creation stands for, read from the trigger where it says so. What the
// trigger leaves out is left out.
func (c Creation) created(trigger render.Object) []createdKind {
	group := c.Group
	if c.GroupFrom != "" {
		if g := textAt(trigger, c.GroupFrom); g != "" {
			group = g
		}
	}
	if group == "" || (trigger.Object != nil && !c.When.holds(trigger)) {
		return nil
	}
	var kinds []createdKind
	for _, k := range c.Kinds {
		kind, plural := k.Kind, k.Plural
		if k.KindFrom != "" {
			kind = textAt(trigger, k.KindFrom)
		}
		if k.PluralFrom != "" {
			plural = textAt(trigger, k.PluralFrom)
		}
		if kind != "" {
			kinds = append(kinds, createdKind{schema.GroupKind{Group: group, Kind: kind}, plural})
		}
	}
	return kinds
}

// covers reports whether a created kind stands for gk.
func (k createdKind) covers(gk schema.GroupKind) bool {
	return groupCovers(k.Group, gk.Group) && (k.Kind == gk.Kind || k.Kind == "*")
}

// exact reports whether it names one kind of one group.
func (k createdKind) exact() bool { return k.Kind != "*" && !strings.HasPrefix(k.Group, "*.") }

func groupCovers(pattern, group string) bool {
	if below, ok := strings.CutPrefix(pattern, "*"); ok {
		return strings.HasSuffix(group, below) && group != strings.TrimPrefix(below, ".")
	}
	return pattern == group
}

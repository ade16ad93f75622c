package crds

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/render"
)

// platformOrigin finds a platform that brings a kind; always narrows it to those that no cluster
// with Flux is without.
func platformOrigin(gk schema.GroupKind, catalogue *Catalogue, always bool) (Origin, bool) {
	for _, p := range catalogue.Platforms {
		if always && !p.Always {
			continue
		}
		for _, creation := range p.Creates {
			for _, kind := range creation.created(render.Object{Unstructured: &unstructured.Unstructured{}}) {
				if kind.covers(gk) {
					return Origin{Class: FromPlatform, Evidence: EvidenceCatalogue, Name: p.Name, Reference: p.Evidence, Plural: kind.plural}, true
				}
			}
		}
	}
	return Origin{}, false
}

// outsideGit is where a kind comes from that nothing in git brings.
func outsideGit(gk schema.GroupKind, catalogue *Catalogue, served *Served) Origin {
	if versions, owner, ok := served.known(gk); ok {
		class := FromPlatform
		switch owner.By {
		case "":
			class = FromUnknown
		case OwnerHelm:
			class = FromChart
		case OwnerFlux:
			class = FromGit
		case OwnerController:
			class = FromRuntime
		}
		return Origin{Class: class, Evidence: EvidenceCluster, Versions: versions, Name: owner.Name}
	}
	if o, ok := platformOrigin(gk, catalogue, false); ok {
		return o
	}
	return Origin{Class: FromUnknown}
}

// hint says what the catalogue knows about a kind that nothing in git brings.
func (c *collector) hint(gk schema.GroupKind) string {
	for _, off := range c.off {
		if off.chart.brings(gk) {
			return fmt.Sprintf("%s installs %s without its CRDs: %s", off.object.ID(), off.chart.Name, off.reason)
		}
	}
	for _, chart := range c.catalogue.Charts {
		if chart.brings(gk) {
			return fmt.Sprintf("the chart %s brings it, but no release in git installs it", strings.Join(chart.Charts, " or "))
		}
	}
	for _, o := range c.catalogue.Operators {
		if o.creates(gk) {
			return fmt.Sprintf("%s brings it, but nothing in git %s", o.Name, o.lacking())
		}
	}
	return ""
}

// creates reports whether the catalogue says of an operator that it creates a kind, whatever its
// triggers say.
func (o *Operator) creates(gk schema.GroupKind) bool {
	for _, creation := range o.Creates {
		for _, k := range creation.Kinds {
			if creation.GroupFrom == "" && groupCovers(creation.Group, gk.Group) && (k.KindFrom != "" || k.Kind == gk.Kind || k.Kind == "*") {
				return true
			}
		}
	}
	return false
}

func (o *Operator) lacking() string {
	if o.Trigger != nil {
		return fmt.Sprintf("is a %s of %s", o.Trigger.Kind, o.Trigger.Group)
	}
	return "runs it"
}

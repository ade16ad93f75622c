package report

import (
	"strings"
	"testing"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/tiers"
)

// A kind that every tier uses takes one line of a screen, and is told in full to scripts.
func TestProvidersCutTheTiersShort(t *testing.T) {
	p := crds.Provider{Origins: []crds.Origin{{Class: crds.FromRuntime}}}
	p.Kind, p.Group = "HelmRelease", "helm.toolkit.fluxcd.io"
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		p.Uses = append(p.Uses, crds.Use{Tier: tiers.Key{Namespace: "flux-system", Name: name}})
	}
	var text strings.Builder
	if err := Providers(&text, []crds.Provider{p}, "flux-system"); err != nil {
		t.Fatal(err)
	}
	if want := "  a, b, c and 2 more\n"; !strings.Contains(text.String(), want) {
		t.Errorf("got\n%swant %q in it", text.String(), want)
	}
	if used := NewProvidersDocument([]crds.Provider{p}).Kinds[0].UsedBy; len(used) != 5 {
		t.Errorf("the document has %q", used)
	}
}

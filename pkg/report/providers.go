package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/tiers"
)

// ProvidersDocument is the contract of `standup crds --list -o json`.
type ProvidersDocument struct {
	Kinds []ProviderDocument `json:"kinds"`
}

// ProviderDocument says where one kind comes from.
type ProviderDocument struct {
	Group    string   `json:"group"`
	Kind     string   `json:"kind"`
	Versions []string `json:"versions"`
	Provider string   `json:"provider"`
	Trigger  string   `json:"trigger,omitempty"`
	Tier     string   `json:"tier,omitempty"`
	Evidence string   `json:"evidence"`
	UsedBy   []string `json:"usedBy"`
	Hint     string   `json:"hint,omitempty"`
}

// NewProvidersDocument converts the providers, keeping their order.
func NewProvidersDocument(providers []crds.Provider) ProvidersDocument {
	d := ProvidersDocument{Kinds: make([]ProviderDocument, 0, len(providers))}
	for _, p := range providers {
		origin := p.Primary()
		row := ProviderDocument{
			Group: p.Group, Kind: p.Kind, Versions: p.Versions, Provider: string(origin.Class), Trigger: origin.Trigger(),
			Evidence: string(origin.Evidence), UsedBy: keyStrings(usedBy(p)), Hint: p.Hint,
		}
		if origin.Tier != (tiers.Key{}) {
			row.Tier = origin.Tier.String()
		}
		d.Kinds = append(d.Kinds, row)
	}
	return d
}

// Providers prints where every kind comes from, those built into Kubernetes only counted.
func Providers(w io.Writer, providers []crds.Provider, namespace string) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "KIND\tGROUP\tPROVIDER\tTIER\tTRIGGER\tEVIDENCE\tUSED BY")
	builtin := 0
	for _, p := range providers {
		origin := p.Primary()
		if origin.Class == crds.FromBuiltin {
			builtin++
			continue
		}
		tier := ""
		if origin.Tier != (tiers.Key{}) {
			tier = Name(origin.Tier, namespace)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", p.Kind, p.Group, origin.Class, dash(tier), dash(origin.Trigger()), origin.Evidence,
			firstOf(names(usedBy(p), namespace)))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s, %d more of Kubernetes itself\n", count(len(providers)-builtin, "kind"), builtin)
	return err
}

// firstOf is a list cut short: a kind such as HelmRelease is used by nearly every tier, and a line is read
// on a screen. The JSON document has them all.
func firstOf(names []string) string {
	const shown = 3
	if len(names) <= shown+1 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
}

// usedBy lists the tiers that use a kind, in tier order.
func usedBy(p crds.Provider) []tiers.Key {
	var keys []tiers.Key
	seen := map[tiers.Key]bool{}
	for _, u := range p.Uses {
		if !seen[u.Tier] {
			seen[u.Tier] = true
			keys = append(keys, u.Tier)
		}
	}
	return keys
}

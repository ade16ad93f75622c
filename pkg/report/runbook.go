package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/standup-sh/standup/pkg/tiers"
	"github.com/standup-sh/standup/pkg/wait"
)

// Runbook writes down, as Markdown, how to bring the graph's cluster up from nothing: the commands,
// then the tiers wave by wave. It holds nothing that git does not: printed again, it is the same.
func Runbook(w io.Writer, g *tiers.Graph, namespace string) error {
	entry := g.Entry
	var b strings.Builder
	fmt.Fprintf(&b, "# Recovering the cluster of `%s`\n\n", entry)
	b.WriteString("Printed by `standup runbook`. Print it anew when the graph changes.\n\n")
	fmt.Fprintf(&b, "1. Kubernetes is up and `kubectl config current-context` names the right cluster.\n")
	fmt.Fprintf(&b, "2. Flux is installed and points at this repository, path `%s` (`flux bootstrap`, or the FluxInstance).\n", entry)
	if secrets := decryptionSecrets(g, namespace); len(secrets) > 0 {
		fmt.Fprintf(&b, "3. The decryption keys are back, since git cannot hold them: %s.\n", strings.Join(secrets, ", "))
	} else {
		b.WriteString("3. Secrets that git does not hold are back.\n")
	}
	fmt.Fprintf(&b, "4. In a clone at the revision that Flux has:\n\n```console\nstandup up --path %s --dry-run    # what would be done, and deleted\nstandup up --path %s\n```\n\n", entry, entry)
	fmt.Fprintf(&b, "   Interrupt it and run it again as often as you like. `standup status --path %s` says at any time what is not ready and why.\n\n", entry)
	fmt.Fprintf(&b, "Flux's own timeouts allow it %s along the critical path; it usually takes a small part of that.\n", Duration(wait.DefaultTimeout(g)))
	for wave := range waves(g) {
		fmt.Fprintf(&b, "\n## Wave %d\n\n| tier | gates | path | needs |\n|---|---|---|---|\n", wave)
		for _, t := range g.Tiers {
			if t.Wave == wave {
				fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", Name(t.Key, namespace), gates(t), dash(t.Kustomization.Spec.Path), dash(strings.Join(names(t.DependsOn, namespace), ", ")))
			}
		}
	}
	fmt.Fprintf(&b, "\nCritical path: %s\n", dash(strings.Join(names(g.CriticalPath, namespace), " → ")))
	_, err := io.WriteString(w, b.String())
	return err
}

func gates(t *tiers.Tier) string {
	switch {
	case t.Suspend:
		return "suspended in git"
	case t.Gate:
		return "yes"
	}
	return ""
}

// decryptionSecrets names the Secrets with decryption keys that tiers refer to, in tier order.
func decryptionSecrets(g *tiers.Graph, namespace string) []string {
	var out []string
	seen := map[tiers.Key]bool{}
	for _, t := range g.Tiers {
		d := t.Kustomization.Spec.Decryption
		if d == nil || d.SecretRef == nil {
			continue
		}
		key := tiers.Key{Namespace: t.Namespace, Name: d.SecretRef.Name}
		if !seen[key] {
			seen[key] = true
			out = append(out, "Secret `"+Name(key, namespace)+"`")
		}
	}
	return out
}

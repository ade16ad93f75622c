package report

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/standup-sh/standup/pkg/tiers"
	"github.com/standup-sh/standup/pkg/wait"
)

// DiagnosisOptions say how Diagnoses prints.
type DiagnosisOptions struct {
	Namespace string // left out of names
	Now       time.Time
	// Busy prints tiers that are merely busy or about to be looked at, too.
	Busy bool
}

// listed bounds how many tiers a diagnosis names before it only counts.
const listed = 6

// Diagnoses prints causes, one block each, in their order: first what is wrong, in one line, then
// what it holds up, the objects and pods behind it, what Flux says and when it tries again, and what
// to run. It is the same text in wait, status and up.
func Diagnoses(w io.Writer, causes []wait.Diagnosis, o DiagnosisOptions) error {
	first := true
	var unread []string
	for _, d := range causes {
		if !o.Busy && !d.Cause.Failure() {
			continue
		}
		if !first {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		first = false
		if len(unread) == 0 { // the same for all causes of one look at the cluster
			unread = d.Unread
		}
		if _, err := io.WriteString(w, diagnosisText(d, o)); err != nil {
			return err
		}
	}
	for _, text := range unread {
		if _, err := fmt.Fprintf(w, "note: %s\n", text); err != nil {
			return err
		}
	}
	return nil
}

// DiagnosisLine is a cause in one line: the tier, what is wrong, how many tiers it holds up.
func DiagnosisLine(d wait.Diagnosis, namespace string) string {
	text := Name(d.Tier, namespace) + ": " + d.Summary
	if n := len(d.Blocks); n > 0 {
		text += fmt.Sprintf(" (holds up %s)", count(n, "more tier"))
	}
	return text
}

func diagnosisText(d wait.Diagnosis, o DiagnosisOptions) string {
	b := &block{}
	fmt.Fprintf(&b.text, "%s: %s [%s]\n", Name(d.Tier, o.Namespace), d.Summary, d.Cause)
	if len(d.Blocks) > 0 {
		b.line("holds up", tierList(d.Blocks, o.Namespace))
	}
	if len(d.Path) > 0 {
		b.line("circle", strings.Join(names(d.Path, o.Namespace), " → "))
	}
	if d.Object != "" && d.Object != "Kustomization/"+d.Tier.String() && !strings.Contains(d.Summary, d.Object) {
		b.line("object", d.Object)
	}
	if len(d.MissingKinds) > 1 {
		b.line("kinds", missingKinds(d))
	}
	for _, object := range d.Waiting {
		b.waiting(object)
	}
	b.flux(d.FluxMessage, d.Summary)
	if !d.Since.IsZero() && !o.Now.Before(d.Since) {
		b.line("since", fmt.Sprintf("%s (%s)", d.Since.UTC().Format("15:04:05Z"), Duration(o.Now.Sub(d.Since))))
	}
	b.line("retry", retryText(d, o.Now))
	b.line("hint", d.Hint)
	b.line("run", d.Command)
	return b.text.String()
}

// block writes lines with a label in a column of its own.
type block struct{ text strings.Builder }

func (b *block) line(label, text string) {
	if text != "" {
		fmt.Fprintf(&b.text, "  %-9s %s\n", label, text)
	}
}

func (b *block) waiting(object wait.WaitingObject) {
	text := object.ID + "  " + object.Status
	if object.Message != "" {
		text += "  " + object.Message
	}
	b.line("waits for", text)
	for _, pod := range object.Pods {
		text := "  Pod/" + pod.Name + "  " + pod.Phase
		if len(pod.Waiting) > 0 {
			text += "  " + strings.Join(pod.Waiting, "; ")
		}
		b.line("", text)
	}
	for _, event := range object.Events {
		b.line("", "  "+event)
	}
}

func missingKinds(d wait.Diagnosis) string {
	var kinds []string
	for _, kind := range d.MissingKinds {
		text := cmp.Or(kind.GVK.Kind, "every kind")
		if kind.GVK.Version != "" {
			text += " of " + kind.GVK.GroupVersion().String()
		}
		kinds = append(kinds, text)
	}
	return strings.Join(kinds, ", ")
}

// fluxLines bounds how much of Flux's message is shown.
const fluxLines = 3

// changeLog is a line of what a failed pass did apply, which Flux puts after its error (apply in
// kustomize-controller's internal/controller/kustomization_controller.go).
var changeLog = regexp.MustCompile(`^[A-Z]\w*/\S+ (?:created|configured|unchanged|deleted|skipped)$`)

// flux writes Flux's own words, unless the summary already is them.
func (b *block) flux(message, summary string) {
	message = strings.TrimSpace(message)
	if message == "" || strings.HasPrefix(summary, message) {
		return
	}
	lines := slices.DeleteFunc(strings.Split(message, "\n"), changeLog.MatchString)
	label := "Flux says"
	for _, text := range lines[:min(len(lines), fluxLines)] {
		b.line(label, text)
		label = ""
	}
	if more := len(lines) - fluxLines; more > 0 {
		b.line("", fmt.Sprintf("(%s more)", count(more, "line")))
	}
}

func retryText(d wait.Diagnosis, now time.Time) string {
	switch {
	case d.Retrying:
		return "Flux is trying again now"
	case d.NextRetry.After(now):
		return fmt.Sprintf("Flux tries again in %s, then every %s", Duration(d.NextRetry.Sub(now)), Duration(d.RetryEvery))
	case d.RetryEvery > 0:
		return "Flux tries again every " + Duration(d.RetryEvery)
	case d.FluxMessage != "" && d.Cause.Failure():
		return "Flux does not try again before something changes"
	}
	return ""
}

func tierList(keys []tiers.Key, namespace string) string {
	all := names(keys, namespace)
	if len(all) > listed {
		return fmt.Sprintf("%s: %s and %d more", count(len(all), "tier"), strings.Join(all[:listed], ", "), len(all)-listed)
	}
	return fmt.Sprintf("%s: %s", count(len(all), "tier"), strings.Join(all, ", "))
}

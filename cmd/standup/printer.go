package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/report"
	"github.com/standup-sh/standup/pkg/resume"
	"github.com/standup-sh/standup/pkg/wait"
)

// printer shows the events of a run and how it ended. Its methods may be called from several
// goroutines: tiers are freed beside the run that resumes others.
type printer interface {
	Resume(resume.Event)
	CRDs(crds.Event)
	Wait(wait.Event)
	// Close ends the showing; End does it too. It may be called again.
	Close()
	// End shows where every tier stands, and why those that are not ready are not.
	End([]wait.TierStatus, []wait.Diagnosis) error
}

func eventFormats() []string { return []string{"text", "json"} }

// newPrinter picks the printer that --output, --quiet and the terminal ask for.
func (a *app) newPrinter(c *cli.Context) (printer, error) {
	switch format := c.String(flagOutput); format {
	case "text":
		text := a.newTextPrinter(c)
		if !a.terminal || c.Bool(flagQuiet) {
			return text, nil
		}
		title := "standup " + c.Command.Name
		if path := c.String(flagPath); path != "" {
			title += " · " + path
		}
		return newLivePrinter(text, a.stderr, &report.Live{
			Title: title, Namespace: c.String(flagNamespace), Start: time.Now(), Color: a.color(c.Bool(flagNoColor)),
		}), nil
	case "json":
		return &jsonPrinter{lines: report.JSONLines{W: a.stdout}}, nil
	default:
		return nil, &report.FormatError{Format: format, Known: eventFormats()}
	}
}

// newTextPrinter prints a line a change, whatever the terminal.
func (a *app) newTextPrinter(c *cli.Context) *textPrinter {
	events := a.stderr
	if c.Bool(flagQuiet) {
		events = io.Discard
	}
	return &textPrinter{
		lines:  report.Lines{W: events, Namespace: c.String(flagNamespace), Start: time.Now()},
		stdout: a.stdout, stderr: a.stderr,
	}
}

// textPrinter writes a line a change to stderr, and the final table to stdout.
type textPrinter struct {
	mu             sync.Mutex
	lines          report.Lines
	stdout, stderr io.Writer
}

func (p *textPrinter) Resume(e resume.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines.Resume(e)
}

func (p *textPrinter) CRDs(e crds.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines.CRDs(time.Now(), e)
}

func (p *textPrinter) Wait(e wait.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines.Wait(e)
}

func (p *textPrinter) Close() {}

func (p *textPrinter) End(statuses []wait.TierStatus, causes []wait.Diagnosis) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if err := report.Status(p.stdout, statuses, report.StatusOptions{Namespace: p.lines.Namespace, Now: now}); err != nil {
		return err
	}
	if len(causes) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(p.stdout); err != nil {
		return err
	}
	return report.Diagnoses(p.stdout, causes, report.DiagnosisOptions{Namespace: p.lines.Namespace, Now: now})
}

// jsonPrinter writes one event a line to stdout.
type jsonPrinter struct {
	mu    sync.Mutex
	lines report.JSONLines
}

func (p *jsonPrinter) Resume(e resume.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines.Resume(e)
}

func (p *jsonPrinter) CRDs(e crds.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines.CRDs(time.Now(), e)
}

func (p *jsonPrinter) Wait(e wait.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines.Wait(e)
}

func (p *jsonPrinter) Close() {}

func (p *jsonPrinter) End(statuses []wait.TierStatus, causes []wait.Diagnosis) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines.Status(time.Now(), statuses, causes)
	return nil
}

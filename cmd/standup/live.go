package main

import (
	"io"
	"os"
	"strings"
	"sync"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/report"
	"github.com/standup-sh/standup/pkg/resume"
	"github.com/standup-sh/standup/pkg/wait"
)

// livePrinter redraws the tiers in place while a run goes on, and leaves the final table behind, and
// above it what was applied and what went wrong. It takes the terminal that stderr is with the first
// event, and gives it back with Close or End.
type livePrinter struct {
	text  *textPrinter
	start func() *tea.Program
	begun bool
	done  chan struct{}
	mu    sync.Mutex
	tea   *tea.Program
	kept  report.Lines
}

func newLivePrinter(text *textPrinter, stderr io.Writer, live *report.Live) *livePrinter {
	p := &livePrinter{text: text, done: make(chan struct{}), kept: report.Lines{Namespace: live.Namespace, Start: live.Start}}
	p.start = func() *tea.Program {
		// Ctrl-C stays the signal that it is, and keys are nobody's business.
		program := tea.NewProgram(&liveModel{live: live, width: 100, height: 24}, tea.WithOutput(stderr), tea.WithInput(nil),
			tea.WithoutSignalHandler(), tea.WithFPS(15))
		go func() {
			defer close(p.done)
			if _, err := program.Run(); err != nil {
				// A terminal that cannot be drawn on is no reason to stop a recovery.
				_, _ = io.WriteString(stderr, "standup: drawing: "+err.Error()+"\n")
			}
		}()
		return program
	}
	return p
}

func (p *livePrinter) send(e any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tea == nil && !p.begun {
		p.begun, p.tea = true, p.start()
	}
	if p.tea != nil {
		p.tea.Send(e)
	}
}

func (p *livePrinter) Resume(e resume.Event) {
	p.send(e)
	if e.Kind == resume.EventWarning || e.Kind == resume.EventFinished {
		p.keep(func(l *report.Lines) { l.Resume(e) })
	}
}

func (p *livePrinter) CRDs(e crds.Event) {
	p.send(e)
	if e.Kind == crds.EventPartial || e.Kind == crds.EventWrite || e.Kind == crds.EventExcluded {
		p.keep(func(l *report.Lines) { l.CRDs(time.Now(), e) })
	}
}

func (p *livePrinter) Wait(e wait.Event) { p.send(e) }

// keep prints a line above the view, where it stays when that goes.
func (p *livePrinter) keep(print func(*report.Lines)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var line strings.Builder
	p.kept.W = &line
	print(&p.kept)
	if p.tea != nil && line.Len() > 0 {
		p.tea.Println(strings.TrimSuffix(line.String(), "\n"))
	}
}

func (p *livePrinter) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tea != nil {
		p.tea.Send(over{}) // Quit itself never reaches the model
		p.tea.Quit()
		<-p.done
		p.tea = nil
	}
}

func (p *livePrinter) End(statuses []wait.TierStatus, causes []wait.Diagnosis) error {
	p.Close()
	return p.text.End(statuses, causes)
}

// liveModel adapts report.Live to bubbletea.
type liveModel struct {
	live          *report.Live
	width, height int
	over          bool
}

type tick time.Time

// over says that the final table takes the live view's place.
type over struct{}

func everySecond() tea.Cmd {
	return tea.Tick(time.Second, func(t time.Time) tea.Msg { return tick(t) })
}

func (m *liveModel) Init() tea.Cmd { return everySecond() }

func (m *liveModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case over:
		m.over = true
	case tick:
		return m, everySecond()
	case resume.Event:
		m.live.Resume(msg)
	case crds.Event:
		m.live.CRDs(time.Now(), msg)
	case wait.Event:
		m.live.Wait(msg)
	}
	return m, nil
}

func (m *liveModel) View() string {
	if m.over {
		return "" // the final table takes its place
	}
	return m.live.View(m.width, m.height-1, time.Now())
}

// color reports whether colours are allowed: a terminal, no --no-color, no NO_COLOR.
func (a *app) color(noColor bool) bool {
	return a.terminal && !noColor && os.Getenv("NO_COLOR") == ""
}

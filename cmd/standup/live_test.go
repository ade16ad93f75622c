package main

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/report"
	"github.com/standup-sh/standup/pkg/resume"
)

// screen is a terminal that only remembers what it was sent.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

var cursorUp = regexp.MustCompile(`\x1b\[\d*A`)

// The live view goes when the run ends: the final table takes its place. What was applied and what
// went wrong stays above it.
func TestLiveViewLeavesOnlyWhatIsKept(t *testing.T) {
	const title = "standup up"
	var s screen
	p := newLivePrinter(nil, &s, &report.Live{Title: title, Namespace: "flux-system", Start: time.Now()})
	p.Resume(resume.Event{Time: time.Now(), Kind: resume.EventStarted, Standings: []resume.Standing{{
		Object: resume.Object{Kind: "Kustomization", Namespace: "flux-system", Name: "apps"}, Phase: resume.Working, Selected: true,
	}}})
	for range 500 {
		if strings.Contains(s.String(), title) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	p.CRDs(crds.Event{Kind: crds.EventWrite, Write: &crds.Write{Name: "cdi", GroupVersionKind: schema.GroupVersionKind{Kind: "CDI"}, Action: crds.Created, Why: "brings StorageProfile"}})
	p.Resume(resume.Event{Time: time.Now(), Kind: resume.EventWarning, Message: "the lease was late"})
	p.Close()
	for _, kept := range []string{"CDI/cdi created: brings StorageProfile", "warning: the lease was late"} {
		// The view shows it too, but without the time.
		if !regexp.MustCompile(`\ds  .*` + kept).MatchString(s.String()) {
			t.Errorf("%q is not kept: %q", kept, s.String())
		}
	}
	at := strings.LastIndex(s.String(), title)
	if at < 0 {
		t.Fatalf("the view was never drawn: %q", s.String())
	}
	if rest := s.String()[at:]; !cursorUp.MatchString(rest) {
		t.Errorf("nothing goes back to erase the last view: %q", rest)
	}
}

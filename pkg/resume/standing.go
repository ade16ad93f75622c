package resume

import (
	"github.com/standup-sh/standup/pkg/flux"
)

// Standing is where one object stands, and why.
type Standing struct {
	Object Object      `json:"object"`
	Phase  Phase       `json:"phase"`
	Status flux.Status `json:"status"`
	// Cause is set for Stopped and Held.
	Cause Cause `json:"cause,omitempty"`
	// Blockers are what it waits for, the direct ones only. A stopped object has the one that stops
	// it, or none.
	Blockers []Blocker `json:"blockers,omitempty"`
	// Selected says that the run is to bring it up.
	Selected bool `json:"selected"`
}

func (s *Standing) waits() bool {
	return s.Phase == Blocked || (s.Phase == Working || s.Phase == Failing) && len(s.Blockers) > 0
}

// settle finds the blocked objects that can never go on, and stops them. What is blocked has hope
// as long as everything it waits for has: so hope is spread from what moves by itself, and what it
// does not reach is stopped, by a blocker or by a cycle.
func (c *deciding) settle() {
	hopeful := make(map[Object]bool, len(c.all))
	for _, s := range c.all {
		hopeful[s.Object] = !s.waits() && s.Phase != Stopped && s.Phase != Held
	}
	for changed := true; changed; {
		changed = false
		for _, s := range c.all {
			if !hopeful[s.Object] && s.waits() && firstDead(s.Blockers, hopeful) == nil {
				hopeful[s.Object], changed = true, true
			}
		}
	}
	var dead []*Standing
	for _, s := range c.all {
		if s.waits() && !hopeful[s.Object] {
			s.Blockers = []Blocker{*firstDead(s.Blockers, hopeful)}
			dead = append(dead, s)
		}
	}
	for _, s := range dead {
		s.Phase, s.Cause = Stopped, CauseBlocker
	}
	for _, s := range dead {
		if c.inCycle(s) {
			s.Cause = CauseCycle
		}
	}
}

// firstDead returns the first blocker that has no hope. One that nothing is known of has.
func firstDead(blockers []Blocker, hopeful map[Object]bool) *Blocker {
	for i, b := range blockers {
		if alive, known := hopeful[b.Object]; known && !alive {
			return &blockers[i]
		}
	}
	return nil
}

// inCycle reports whether following blockers leads back.
func (c *deciding) inCycle(start *Standing) bool {
	at := start
	for range c.all {
		if len(at.Blockers) == 0 {
			return false
		}
		if at = c.index[at.Blockers[0].Object]; at == nil {
			return false
		}
		if at == start {
			return true
		}
	}
	return false
}

// Root follows a stopped object's blockers to the first one that is stopped, or held, by itself. In
// a cycle that is the object itself.
func Root(o Object, standings []Standing) Standing {
	index := make(map[Object]Standing, len(standings))
	for _, s := range standings {
		index[s.Object] = s
	}
	at := index[o]
	for range standings {
		if at.Cause == CauseCycle || len(at.Blockers) == 0 {
			return at
		}
		next, ok := index[at.Blockers[0].Object]
		if !ok {
			return at
		}
		at = next
	}
	return index[o]
}

package resume

import (
	"slices"
	"time"
)

const (
	// quietGrace is how long nothing may have moved before a suspected tier is freed: what has just
	// come up may take a moment to do what the tier waits for.
	quietGrace = 10 * time.Second
	// maxSuspicions bounds how often one tier is freed on suspicion: every time may bring it a stage further.
	maxSuspicions = 3
)

// suspects decides about the tiers that may be stuck (see [Options.Suspected]). What they lack may
// still come by itself, and then patience is all they need. So they are freed only once nothing else
// moves that could bring it, or once one has waited for as long as a tier may take. Their own time
// does not run meanwhile.
func (c *deciding) suspects() {
	if c.opts.Suspected == nil {
		return
	}
	var failing []*Standing
	for _, st := range c.all {
		if c.suspect(st) && st.Phase == Failing {
			failing = append(failing, st)
		}
	}
	switch {
	case slices.ContainsFunc(c.all, c.moves):
		c.quiet = time.Time{}
	case c.quiet.IsZero():
		c.quiet = c.now
	}
	for _, st := range failing {
		c.suspected(st)
	}
}

// suspect reports whether a tier may be stuck. One that is in a pass is as it was before.
func (c *deciding) suspect(st *Standing) bool {
	key, ok := st.Object.Tier()
	if !ok || !st.Selected {
		return false
	}
	n := c.notes[st.Object]
	suspect := st.Phase == Working && !n.suspected.IsZero() ||
		st.Phase == Failing && !n.hopeless() && c.opts.Suspected(key, c.s)
	switch {
	case !suspect && !n.suspected.IsZero():
		c.change(st.Object, func(n *note) { n.suspected, n.patient = time.Time{}, false })
	case suspect && n.suspected.IsZero():
		c.change(st.Object, func(n *note) { n.suspected = c.now })
	}
	return suspect
}

// hopeless reports whether freeing a tier has been tried often enough.
func (n note) hopeless() bool { return n.freeGivenUp || n.suspicions >= maxSuspicions }

// moves reports whether an object that is no suspect may still get somewhere by itself, and so bring
// what a suspect lacks. What waits for others moves when they do. A release that has failed is left
// out, because helm-controller may try it again for ever, and so is a tier that could not be freed.
func (c *deciding) moves(st *Standing) bool {
	_, isTier := st.Object.Tier()
	switch {
	case !c.notes[st.Object].suspected.IsZero(), st.Phase == Settled, st.Phase == Stopped, st.Phase == Held:
		return false
	case st.Phase == Failing:
		return isTier && !c.notes[st.Object].hopeless()
	}
	return !slices.ContainsFunc(st.Blockers, func(b Blocker) bool {
		blocker := c.index[b.Object]
		return blocker != nil && blocker.Phase != Settled
	})
}

// suspected frees a suspect that has waited long enough.
func (c *deciding) suspected(st *Standing) {
	key, _ := st.Object.Tier()
	n := c.notes[st.Object]
	at := latest(n.suspected, c.progress).Add(c.tierLimit(c.s.Kustomizations[key]))
	if !c.quiet.IsZero() {
		if soon := latest(n.suspected, c.quiet).Add(quietGrace); soon.Before(at) {
			at = soon
		}
	}
	due := c.due(at)
	c.change(st.Object, func(n *note) { n.patient = !due })
	if due && c.due(n.freeAgain) {
		c.actions = slices.DeleteFunc(c.actions, func(a Action) bool { return a.Object == st.Object })
		c.actions = append(c.actions, Action{Verb: Free, Object: st.Object, Why: WhySuspected})
	}
}

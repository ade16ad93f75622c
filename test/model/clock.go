package model

import (
	"container/heap"
	"time"
)

// Clock is virtual time and what is to happen in it. Events at the same time happen in the order in
// which they were set.
type Clock struct {
	now    time.Time
	events events
	set    int
}

// Start is when every model begins.
func Start() time.Time { return time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC) }

// Now returns the virtual time.
func (c *Clock) Now() time.Time { return c.now }

// After sets an event.
func (c *Clock) After(d time.Duration, do func()) {
	c.set++
	heap.Push(&c.events, event{at: c.now.Add(d), order: c.set, do: do})
}

// Next returns the time of the next event, and whether there is one.
func (c *Clock) Next() (time.Time, bool) {
	if len(c.events) == 0 {
		return time.Time{}, false
	}
	return c.events[0].at, true
}

// Step goes on to the next event and lets it happen; it returns false when there is none.
func (c *Clock) Step() bool {
	if len(c.events) == 0 {
		return false
	}
	e, _ := heap.Pop(&c.events).(event)
	c.now = e.at
	e.do()
	return true
}

// Advance lets everything happen that is due by a time, and goes on to it.
func (c *Clock) Advance(to time.Time) {
	for len(c.events) > 0 && !c.events[0].at.After(to) {
		c.Step()
	}
	if to.After(c.now) {
		c.now = to
	}
}

// RunUntil steps until done, or until no event is left before the limit; it returns done.
func (c *Clock) RunUntil(limit time.Duration, done func() bool) bool {
	end := c.now.Add(limit)
	for !done() {
		at, ok := c.Next()
		if !ok || at.After(end) {
			return false
		}
		c.Step()
	}
	return true
}

type event struct {
	at    time.Time
	order int
	do    func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	if e[i].at.Equal(e[j].at) {
		return e[i].order < e[j].order
	}
	return e[i].at.Before(e[j].at)
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any) {
	if v, ok := x.(event); ok {
		*e = append(*e, v)
	}
}
func (e *events) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}

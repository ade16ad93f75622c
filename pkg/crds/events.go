package crds

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/tiers"
)

// Action is what became of one object, in Flux's words.
type Action string

// The actions. In a dry run they say what would become of it.
const (
	Created    Action = "created"
	Configured Action = "configured"
	Unchanged  Action = "unchanged"
)

// Write is one object that was applied, or would be.
type Write struct {
	schema.GroupVersionKind
	Namespace, Name string
	Tier            tiers.Key
	File            string
	Line            int
	Action          Action
	// Why says what the object is for: "brings StorageProfile (cdi.kubevirt.io/v1beta1)".
	Why string
	// Predicted says that a dry run could not ask the API server, because the object's kind or
	// namespace does not exist yet.
	Predicted bool
}

// ID names the object: Kind/namespace/name.
func (w Write) ID() string {
	if w.Namespace == "" {
		return w.Kind + "/" + w.Name
	}
	return w.Kind + "/" + w.Namespace + "/" + w.Name
}

// Exclusion is an object that was left out, and why.
type Exclusion struct {
	Object string // Kind/namespace/name
	File   string
	Reason string
}

// Outcome is what freeing one tier did.
type Outcome struct {
	Tier tiers.Key
	// Partial says that the whole tier was applied as far as its kinds exist, for want of a known
	// trigger.
	Partial  bool
	Writes   []Write
	Excluded []Exclusion
	// Served are the kinds that were missing and are served now.
	Served []schema.GroupVersionKind
}

// Changed counts the objects that were created or configured.
func (o Outcome) Changed() int {
	n := 0
	for _, w := range o.Writes {
		if w.Action != Unchanged {
			n++
		}
	}
	return n
}

// EventKind says what an Event tells.
type EventKind string

// The kinds of events.
const (
	EventPartial  EventKind = "partial"  // a whole-tier partial apply begins; Message says why
	EventWrite    EventKind = "write"    // an object was applied, or would be
	EventExcluded EventKind = "excluded" // an object was left out
	EventWaiting  EventKind = "waiting"  // kinds are awaited; Message says what is in the way, if known
	EventServed   EventKind = "served"   // a kind is served now
	EventNudged   EventKind = "nudged"   // the tier was asked for a pass
	EventPassed   EventKind = "passed"   // the tier's pass succeeded
)

// Event is one thing that happened while a tier was freed. Events come from one goroutine.
type Event struct {
	Kind     EventKind
	Tier     tiers.Key
	Write    *Write                    // EventWrite
	Excluded *Exclusion                // EventExcluded
	Kinds    []schema.GroupVersionKind // EventWaiting, EventServed
	Message  string
}

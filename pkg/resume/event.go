package resume

import "time"

// EventKind says what an event reports.
type EventKind string

// The kinds of events.
const (
	// EventStarted: the first snapshot has been read. Standings holds where everything stands.
	EventStarted EventKind = "started"
	// EventAction: a patch was accepted, or a tier was freed. Action says which.
	EventAction EventKind = "action"
	// EventStanding: a tier stands elsewhere than before. Standing says where.
	EventStanding EventKind = "standing"
	// EventWarning: something went wrong that the run goes on from. Object may be set.
	EventWarning EventKind = "warning"
	// EventLease: the lease was taken.
	EventLease EventKind = "lease"
	// EventFinished: the run is over. Summary is set.
	EventFinished EventKind = "finished"
)

// Event is one thing that happened in a run.
type Event struct {
	Time      time.Time  `json:"time"`
	Kind      EventKind  `json:"event"`
	Object    *Object    `json:"object,omitempty"`
	Action    *Action    `json:"action,omitempty"`
	Standing  *Standing  `json:"standing,omitempty"`
	Standings []Standing `json:"standings,omitempty"`
	Summary   *Summary   `json:"summary,omitempty"`
	Message   string     `json:"message,omitempty"`
}

// Summary is what a run did.
type Summary struct {
	// Elapsed is the time from the first snapshot to the end, in nanoseconds in JSON.
	Elapsed time.Duration `json:"elapsed"`
	// Ready counts the selected tiers that are settled, Tiers all that are selected.
	Ready int `json:"ready"`
	Tiers int `json:"tiers"`
	// Writes counts what was written, Resumed and Nudged the patches by their kind, Applied the
	// objects that were applied to free tiers.
	Writes  int `json:"writes"`
	Resumed int `json:"resumed"`
	Nudged  int `json:"nudged"`
	Applied int `json:"applied"`
	// Held counts the selected tiers that were left suspended because git says so.
	Held int `json:"held"`
	// Load is how busy kustomize-controller was.
	Load Load `json:"load"`
}

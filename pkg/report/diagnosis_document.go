package report

import (
	"time"

	"github.com/standup-sh/standup/pkg/wait"
)

// DiagnosisDocument is one cause as JSON. Fields are only ever added.
type DiagnosisDocument struct {
	Cause        string                `json:"cause"`
	Tier         string                `json:"tier"` // namespace/name, as everywhere in JSON
	Object       string                `json:"object,omitempty"`
	Summary      string                `json:"summary"`
	Hint         string                `json:"hint,omitempty"`
	FluxMessage  string                `json:"fluxMessage,omitempty"`
	Since        *time.Time            `json:"since,omitempty"`
	Blocks       []string              `json:"blocks"`
	Path         []string              `json:"path,omitempty"`
	MissingKinds []MissingKindDocument `json:"missingKinds,omitempty"`
	Waiting      []WaitingDocument     `json:"waiting,omitempty"`
	NextRetry    *time.Time            `json:"nextRetry,omitempty"`
	RetryEvery   string                `json:"retryEvery,omitempty"`
	Retrying     bool                  `json:"retrying,omitempty"`
	Command      string                `json:"command,omitempty"`
	Unread       []string              `json:"unread,omitempty"`
}

// MissingKindDocument is a kind that Flux did not find.
type MissingKindDocument struct {
	Group   string `json:"group,omitempty"`
	Version string `json:"version,omitempty"`
	Kind    string `json:"kind,omitempty"`
	Object  string `json:"object,omitempty"`
}

// WaitingDocument is an object that keeps a tier from being healthy.
type WaitingDocument struct {
	Object  string        `json:"object"`
	Status  string        `json:"status"`
	Message string        `json:"message,omitempty"`
	Pods    []PodDocument `json:"pods,omitempty"`
	Events  []string      `json:"events,omitempty"`
}

// PodDocument is a pod that does not run.
type PodDocument struct {
	Name    string   `json:"name"`
	Phase   string   `json:"phase,omitempty"`
	Waiting []string `json:"waiting,omitempty"`
}

// NewDiagnosisDocument converts one cause.
func NewDiagnosisDocument(d wait.Diagnosis) DiagnosisDocument {
	doc := DiagnosisDocument{
		Cause: string(d.Cause), Tier: d.Tier.String(), Object: d.Object, Summary: d.Summary, Hint: d.Hint,
		FluxMessage: d.FluxMessage, Since: moment(d.Since), Blocks: keyStrings(d.Blocks), Path: keyStrings(d.Path),
		NextRetry: moment(d.NextRetry), Retrying: d.Retrying, Command: d.Command, Unread: d.Unread,
	}
	if d.RetryEvery > 0 {
		doc.RetryEvery = d.RetryEvery.String()
	}
	for _, kind := range d.MissingKinds {
		doc.MissingKinds = append(doc.MissingKinds, MissingKindDocument{
			Group: kind.GVK.Group, Version: kind.GVK.Version, Kind: kind.GVK.Kind, Object: kind.Object,
		})
	}
	for _, object := range d.Waiting {
		w := WaitingDocument{Object: object.ID, Status: object.Status, Message: object.Message, Events: object.Events}
		for _, pod := range object.Pods {
			w.Pods = append(w.Pods, PodDocument(pod))
		}
		doc.Waiting = append(doc.Waiting, w)
	}
	return doc
}

func diagnosisDocuments(causes []wait.Diagnosis) []DiagnosisDocument {
	docs := make([]DiagnosisDocument, 0, len(causes))
	for _, d := range causes {
		docs = append(docs, NewDiagnosisDocument(d))
	}
	return docs
}

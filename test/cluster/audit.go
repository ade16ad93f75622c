package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// auditPolicy records who asked for what, without bodies. What the components
// read, and the Leases they renew, would be nearly all of the log: it is left out.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users: %s
  verbs: [get, list, watch]
- level: None
  users: %s
  resources:
  - {group: coordination.k8s.io, resources: [leases]}
- level: Metadata
`

func writeAuditPolicy(path string) error {
	names := []string{"system:apiserver", "system:anonymous"}
	for _, name := range users() {
		names = append(names, name)
	}
	slices.Sort(names)
	list, err := json.Marshal(names)
	if err != nil {
		return fmt.Errorf("writing the audit policy: %w", err)
	}
	if err := os.WriteFile(path, fmt.Appendf(nil, auditPolicy, list, list), 0o600); err != nil {
		return fmt.Errorf("writing the audit policy: %w", err)
	}
	return nil
}

func (c *Cluster) auditPath() string { return filepath.Join(c.dir, "logs", "audit.log") }

// Entry is one request that the API server has answered, or, for a watch, has
// begun to answer.
type Entry struct {
	Time         time.Time
	User         string
	UserAgent    string
	Verb         string // get list watch create update patch delete deletecollection; get, post, … where Resource is empty
	Group        string
	Resource     string // plural; empty for requests such as /version
	Subresource  string
	Namespace    string
	Name         string
	Code         int
	DryRun       bool
	FieldManager string // as the client named it
	URI          string
}

// Write tells whether the request was one that changes objects and succeeded.
// Dry runs do not, and neither do access and token reviews, which are created but
// not kept.
func (e Entry) Write() bool {
	if e.DryRun || e.Code >= 300 || e.Group == "authorization.k8s.io" || e.Group == "authentication.k8s.io" {
		return false
	}
	switch e.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return e.Resource != ""
	}
	return false
}

func (e Entry) String() string {
	object := strings.Trim(strings.Join([]string{e.Namespace, e.Name, e.Subresource}, "/"), "/")
	return fmt.Sprintf("%s (%s) %s %s.%s %s: %d", e.User, e.UserAgent, e.Verb, e.Resource, e.Group, object, e.Code)
}

// Writes are the entries that changed something.
func Writes(entries []Entry) []Entry {
	return Select(entries, Entry.Write)
}

// Select are the entries for which all of keep hold.
func Select(entries []Entry, keep ...func(Entry) bool) []Entry {
	var out []Entry
	for _, e := range entries {
		if !slices.ContainsFunc(keep, func(k func(Entry) bool) bool { return !k(e) }) {
			out = append(out, e)
		}
	}
	return out
}

// ByUserAgent keeps the requests of clients whose user agent begins with prefix.
func ByUserAgent(prefix string) func(Entry) bool {
	return func(e Entry) bool { return strings.HasPrefix(e.UserAgent, prefix) }
}

// ByUser keeps one user's requests.
func ByUser(user string) func(Entry) bool {
	return func(e Entry) bool { return e.User == user }
}

// AuditLog reads the API server's audit log.
type AuditLog struct {
	path   string
	config *rest.Config
	serial atomic.Int64
}

// Mark is a place in the audit log.
type Mark int64

func newAuditLog(path string, config *rest.Config) *AuditLog {
	config = rest.CopyConfig(config)
	config.UserAgent = "standup-test-cluster-audit"
	return &AuditLog{path: path, config: config}
}

// Mark is the place after all requests that have been answered by now.
func (a *AuditLog) Mark(ctx context.Context) (Mark, error) {
	end, err := a.settle(ctx, 0)
	return Mark(end), err
}

// Since are the requests answered after m, in the order of the log, those that
// have been answered by now among them. The log's own requests are left out.
func (a *AuditLog) Since(ctx context.Context, m Mark) ([]Entry, error) {
	end, err := a.settle(ctx, int64(m))
	if err != nil {
		return nil, err
	}
	data, err := a.read(int64(m), end)
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for line := range bytes.Lines(data) {
		e, ok, err := parseEntry(line)
		if err != nil {
			return nil, err
		}
		if ok && e.UserAgent != a.config.UserAgent {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// settle asks the API server for something unmistakable and waits until that is
// in the log, and with it all that was answered before. It returns the offset
// after it.
func (a *AuditLog) settle(ctx context.Context, from int64) (int64, error) {
	client, err := discovery.NewDiscoveryClientForConfig(a.config)
	if err != nil {
		return 0, fmt.Errorf("making a client: %w", err)
	}
	mark := fmt.Sprintf("%d-%d", time.Now().UnixNano(), a.serial.Add(1))
	if err := client.RESTClient().Get().AbsPath("/version").Param("mark", mark).Do(ctx).Error(); err != nil {
		return 0, fmt.Errorf("marking the audit log: %w", err)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		data, err := a.read(from, -1)
		if err != nil {
			return 0, err
		}
		if at := bytes.Index(data, []byte("mark="+mark)); at >= 0 {
			if end := bytes.IndexByte(data[at:], '\n'); end >= 0 {
				return from + int64(at+end) + 1, nil
			}
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("reading the audit log: %w", context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// read returns the log between two offsets, to its end where to is negative.
func (a *AuditLog) read(from, to int64) ([]byte, error) {
	f, err := os.Open(a.path)
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	defer func() { _ = f.Close() }()
	if to < 0 {
		to = 1 << 62
	}
	data, err := io.ReadAll(io.NewSectionReader(f, from, to-from))
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	return data, nil
}

// event is the part of audit.k8s.io/v1 Event that an Entry is made of.
type event struct {
	Stage      string `json:"stage"`
	RequestURI string `json:"requestURI"`
	Verb       string `json:"verb"`
	UserAgent  string `json:"userAgent"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		APIGroup    string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	StageTimestamp time.Time `json:"stageTimestamp"`
}

// parseEntry reads one line. A request that is answered at once has one line, a
// watch two, of which the first counts.
func parseEntry(line []byte) (Entry, bool, error) {
	var ev event
	if err := json.Unmarshal(line, &ev); err != nil {
		return Entry{}, false, fmt.Errorf("reading the audit log: %w", err)
	}
	first := "ResponseComplete"
	if ev.Verb == "watch" {
		first = "ResponseStarted"
	}
	if ev.Stage != first && ev.Stage != "Panic" {
		return Entry{}, false, nil
	}
	var query url.Values
	if uri, err := url.ParseRequestURI(ev.RequestURI); err == nil {
		query = uri.Query()
	}
	return Entry{
		Time: ev.StageTimestamp, User: ev.User.Username, UserAgent: ev.UserAgent, Verb: ev.Verb,
		Group: ev.ObjectRef.APIGroup, Resource: ev.ObjectRef.Resource, Subresource: ev.ObjectRef.Subresource,
		Namespace: ev.ObjectRef.Namespace, Name: ev.ObjectRef.Name, Code: ev.ResponseStatus.Code,
		DryRun: query.Get("dryRun") != "", FieldManager: query.Get("fieldManager"), URI: ev.RequestURI,
	}, true, nil
}

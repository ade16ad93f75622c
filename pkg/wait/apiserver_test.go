package wait

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// apiServer answers lists and watches the way a Kubernetes API server does, and counts them. It is
// used where the number and the form of the requests are the point; a fake client hides both.
type apiServer struct {
	url      string
	mu       sync.Mutex
	lists    map[string]any         // resource → body of the next lists
	status   map[string]int         // resource → refuse with this status
	requests []string               // "LIST kustomizations rv=…", in order
	watches  map[string]chan string // resource → frames for the open watch; close ends it
	opened   chan string            // resource of each watch that has been opened
}

func newAPIServer(t *testing.T) (*apiServer, dynamic.Interface) {
	t.Helper()
	s := &apiServer{
		lists: map[string]any{}, status: map[string]int{}, watches: map[string]chan string{},
		opened: make(chan string, 100),
	}
	server := httptest.NewServer(s)
	s.url = server.URL
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return s, client
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(r.URL.Path, "/")
	resource := parts[len(parts)-1]
	verb := "LIST"
	if r.URL.Query().Get("watch") != "" {
		verb = "WATCH"
	}
	rv := r.URL.Query().Get("resourceVersion")
	s.mu.Lock()
	s.requests = append(s.requests, fmt.Sprintf("%s %s rv=%s", verb, resource, rv))
	status, body := s.status[resource], s.lists[resource]
	frames := make(chan string, 100)
	if verb == "WATCH" && status == 0 {
		s.watches[resource] = frames
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if status != 0 {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(refusal(status, resource))
		return
	}
	if body == nil {
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(refusal(http.StatusNotFound, resource))
		return
	}
	if verb == "LIST" {
		_ = json.NewEncoder(w).Encode(body)
		return
	}
	w.(http.Flusher).Flush()
	s.opened <- resource
	for {
		select {
		case <-r.Context().Done():
			return
		case frame, ok := <-frames:
			if !ok {
				return
			}
			_, _ = fmt.Fprintln(w, frame)
			w.(http.Flusher).Flush()
		}
	}
}

func refusal(status int, resource string) map[string]any {
	reason := map[int]string{403: "Forbidden", 401: "Unauthorized", 404: "NotFound", 503: "ServiceUnavailable"}[status]
	message := map[int]string{
		403: resource + ` is forbidden: User "jo" cannot list resource "` + resource + `" at the cluster scope`,
		401: "Unauthorized", 404: "the server could not find the requested resource", 503: "etcd is down",
	}[status]
	return map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure",
		"message": message, "reason": reason, "code": status,
	}
}

// list sets what lists of a resource return.
func (s *apiServer) list(resource, rv string, items ...map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if items == nil {
		items = []map[string]any{}
	}
	s.lists[resource] = map[string]any{
		"kind": "List", "apiVersion": "v1",
		"metadata": map[string]any{"resourceVersion": rv}, "items": items,
	}
}

// refuse makes every request for a resource fail; 0 lets them pass again.
func (s *apiServer) refuse(resource string, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status[resource] = status
}

// send sends one event to the open watch.
func (s *apiServer) send(t *testing.T, resource, kind string, object map[string]any) {
	t.Helper()
	frame, err := json.Marshal(map[string]any{"type": kind, "object": object})
	if err != nil {
		t.Fatal(err)
	}
	for range 500 { // the watch follows the list whose result the test has seen
		s.mu.Lock()
		watch := s.watches[resource]
		s.mu.Unlock()
		if watch != nil {
			watch <- string(frame)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("nobody watches %s", resource)
}

// drop ends the open watch as a restarted API server does.
func (s *apiServer) drop(resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.watches[resource])
}

func (s *apiServer) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.requests...)
}

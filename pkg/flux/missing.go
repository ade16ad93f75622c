package flux

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// MissingForm says which of its messages Flux used for a kind that it could not find, and with that
// how much is certain. Only discovery can say more.
type MissingForm string

// The forms.
const (
	// KindMissing: the group and version are served, the kind is not in them.
	KindMissing MissingForm = "kind"
	// VersionMissing: the group is not served in that version. Either no CRD of the group exists
	// with it, or the kind is served in another version: ask discovery.
	VersionMissing MissingForm = "version"
	// Stale: the controller knew the kind and the server does not: its CRD was deleted, or its
	// discovery is out of date. The message gives no group and version.
	Stale MissingForm = "stale"
)

// MissingKind is one kind that a message says is not known.
type MissingKind struct {
	// GVK is what the message tells: Kind is empty where it names only a group and version, Group
	// and Version are empty where it names only an object.
	GVK  schema.GroupVersionKind
	Form MissingForm
	// Object is the object being applied, as Kind/namespace/name; empty when the message has none.
	Object string
}

// MissingKinds reads the kinds that a condition's message says are not known to the API server,
// in the order of the message and each once. It returns nothing for any other message.
//
// The texts are those of NoKindMatchError in apimachinery's pkg/api/meta/errors.go,
// ErrResourceDiscoveryFailed in controller-runtime's pkg/client/apiutil/errors.go, and DryRunErr in
// fluxcd/pkg's ssa/errors/dryrun.go, which puts the object before them.
func MissingKinds(message string) []MissingKind {
	var found []MissingKind
	for line := range strings.SplitSeq(message, "\n") {
		object := involvedObject(line)
		for _, kind := range slices.Concat(unmatchedKinds(line), unservedVersions(line, object), staleKinds(line, object)) {
			kind.Object = object
			if !slices.Contains(found, kind) {
				found = append(found, kind)
			}
		}
	}
	return found
}

// What the messages look like. An object is Kind/namespace/name or Kind/name.
var (
	involved       = regexp.MustCompile(`(?:^|[:\s])([A-Z][A-Za-z0-9]*(?:/[^/\s]+){1,2}) (?:dry-run failed|not found: |namespace not specified: )`)
	unmatched      = regexp.MustCompile(`no matches for kind "([^"]+)" in (version|versions|group) (\["[^\]]*\]|"[^"]*")`)
	quoted         = regexp.MustCompile(`"([^"]*)"`)
	unservedGroups = regexp.MustCompile(`(?:^|, )([a-z0-9.-]+/v[0-9][a-z0-9]*): `)
)

// involvedObject reads the object that a DryRunErr begins with.
func involvedObject(line string) string {
	m := involved.FindStringSubmatch(line)
	if m == nil {
		return ""
	}
	return m[1]
}

func kindOf(object string) string {
	kind, _, _ := strings.Cut(object, "/")
	return kind
}

// unmatchedKinds reads `no matches for kind "X" in version "g/v"` and its form with several versions.
func unmatchedKinds(line string) []MissingKind {
	var kinds []MissingKind
	for _, m := range unmatched.FindAllStringSubmatch(line, -1) {
		for _, name := range quoted.FindAllStringSubmatch(m[3], -1) {
			gv := groupVersion(name[1])
			if m[2] == "group" {
				gv = schema.GroupVersion{Group: name[1]}
			}
			kinds = append(kinds, MissingKind{GVK: gv.WithKind(m[1]), Form: KindMissing})
		}
	}
	return kinds
}

// unservedVersions reads `unable to retrieve the complete list of server APIs: g/v: …, g/v: …`.
func unservedVersions(line, object string) []MissingKind {
	_, list, ok := strings.Cut(line, "unable to retrieve the complete list of server APIs: ")
	if !ok {
		return nil
	}
	var kinds []MissingKind
	for _, m := range unservedGroups.FindAllStringSubmatch(list, -1) {
		kinds = append(kinds, MissingKind{GVK: groupVersion(m[1]).WithKind(kindOf(object)), Form: VersionMissing})
	}
	return kinds
}

// staleKinds reads `Kind/ns/name not found: the server could not find the requested resource`,
// which for an object without a namespace reads "namespace not specified" instead.
func staleKinds(line, object string) []MissingKind {
	if object == "" || !strings.Contains(line, "the server could not find the requested resource") {
		return nil
	}
	return []MissingKind{{GVK: schema.GroupVersionKind{Kind: kindOf(object)}, Form: Stale}}
}

func groupVersion(text string) schema.GroupVersion {
	gv, err := schema.ParseGroupVersion(text)
	if err != nil {
		return schema.GroupVersion{Version: text}
	}
	return gv
}

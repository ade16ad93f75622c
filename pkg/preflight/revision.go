package preflight

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/standup-sh/standup/pkg/wait"
)

// entry checks that the Kustomization of the entry path exists.
func (p *preflight) entry(ctx context.Context) {
	key := p.opts.Entry
	if key == nil {
		return
	}
	id := "Kustomization/" + key.String()
	k, err := p.clients.Dynamic.Resource(kustomizev1.GroupVersion.WithResource("kustomizations")).Namespace(key.Namespace).
		Get(ctx, key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		p.say("entry", Fail, "bootstrap Flux on this cluster first, or choose another --path", "%s does not exist", id)
	case err != nil:
		p.say("entry", Unknown, "", "reading %s: %v", id, err)
	default:
		if suspended, _, _ := unstructured.NestedBool(k.Object, "spec", "suspend"); suspended {
			p.say("entry", OK, "", "%s exists and is suspended", id)
			return
		}
		p.say("entry", OK, "", "%s exists", id)
	}
}

// source checks that the entry's source has an artifact, and of which revision.
func (p *preflight) source(ctx context.Context) {
	ref := p.opts.Source
	if ref == nil {
		return
	}
	gvr, ok := wait.SourceResource(ref.Kind)
	if !ok {
		p.say("source", Unknown, "", "%s is not a kind of source that Flux knows", ref)
		return
	}
	u, err := p.clients.Dynamic.Resource(gvr).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		p.say("source", Fail, "bootstrap Flux on this cluster first", "%s does not exist", ref)
		return
	case err != nil:
		p.say("source", Unknown, "", "reading %s: %v", ref, err)
		return
	}
	artifact, _, _ := unstructured.NestedString(u.Object, "status", "artifact", "revision")
	suspended, _, _ := unstructured.NestedBool(u.Object, "spec", "suspend")
	switch {
	case artifact != "":
		p.say("source", OK, "", "%s has %s", ref, artifact)
		origin, _, _ := unstructured.NestedString(u.Object, "status", "artifact", "metadata", originRevision)
		p.revision(artifact, origin)
	case suspended:
		p.say("source", Warn, "it is resumed before any tier", "%s is suspended and has no artifact", ref)
	default:
		p.say("source", Warn, "tiers wait until source-controller has fetched it", "%s has no artifact yet%s", ref, because(u))
	}
}

// because is what a source's Ready condition says, if it is not True.
func because(u *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if message, _ := condition["message"].(string); condition["type"] == "Ready" && condition["status"] != "True" && message != "" {
			line, _, _ := strings.Cut(wait.Mask(message), "\n")
			return ": " + line
		}
	}
	return ""
}

// originRevision is the annotation that flux push gives an OCI artifact: the git revision it was
// made from. source-controller keeps it in the artifact's metadata, and kustomize-controller reads it
// as the origin revision.
const originRevision = "org.opencontainers.image.revision"

// revision compares the cluster's revision, or the git revision it was made from, with the one that
// was read.
func (p *preflight) revision(artifact, origin string) {
	local := p.opts.Revision
	if local == "" {
		return
	}
	commit, ok := Commit(artifact)
	if !ok {
		commit, ok = Commit(origin)
	}
	switch {
	case !ok:
		p.say("revision", Unknown, "", "the cluster's revision %s does not name a commit to compare with %s", artifact, short(local))
	case !sameCommit(commit, local):
		p.say("revision", Fail, fmt.Sprintf("push, wait for the cluster to fetch it, or read what it has: --ref %s", commit),
			"the cluster is at %s, read was %s", artifact, short(local))
	default:
		p.say("revision", OK, "", "the cluster is at %s, as read", artifact)
	}
}

// revisionForm is Flux's form of a revision, <name>@<algorithm>:<checksum>, the name being optional;
// see RFC-0005 and TransformLegacyRevision in fluxcd/pkg's git package.
var revisionForm = regexp.MustCompile(`^(?:.+@)?(sha1|sha256):([0-9a-f]+)$`)

// legacyForm is the form before that, <name>/<checksum>.
var legacyForm = regexp.MustCompile(`^.+/([0-9a-f]{40})$`)

// Commit reads the commit id from an artifact's revision. It reports false where the revision names
// no commit: the digest of an OCI artifact, or a bucket's checksum. sha256 names a commit only in a
// repository that uses it, which a revision with a branch or tag before it cannot tell from an OCI
// digest, so that 64 digits are never taken for one.
func Commit(revision string) (string, bool) {
	if m := revisionForm.FindStringSubmatch(revision); m != nil {
		return m[2], m[1] == "sha1" && len(m[2]) == 40
	}
	if m := legacyForm.FindStringSubmatch(revision); m != nil {
		return m[1], true
	}
	return "", false
}

// sameCommit compares commit ids, either of which may be shortened, to no less than seven digits.
func sameCommit(a, b string) bool {
	n := min(len(a), len(b))
	return n >= 7 && strings.EqualFold(a[:n], b[:n])
}

func short(commit string) string {
	if len(commit) > 12 {
		return commit[:12]
	}
	return commit
}

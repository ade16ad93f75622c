package render

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Object is one Kubernetes object of a tier as kustomize-controller would apply it, and where in
// the repository it was written.
type Object struct {
	*unstructured.Unstructured
	// File is the repository-relative, slash-separated path of the manifest the object came from;
	// for one that a generator made, the file that configures the generator; empty when it cannot be
	// told (a remote base).
	File string
	// Line is the 1-based line of the object's document in File; 0 when unknown, and until asked
	// for with Source.Line for objects other than Flux's own.
	Line int
}

// ID names the object the way every message of standup does: Kind/namespace/name, or Kind/name
// for an object without a namespace.
func (o Object) ID() string {
	if ns := o.GetNamespace(); ns != "" {
		return o.GetKind() + "/" + ns + "/" + o.GetName()
	}
	return o.GetKind() + "/" + o.GetName()
}

// Encrypted reports whether the object carries SOPS metadata, so that its values are ciphertext
// and it must never be applied as it stands.
func (o Object) Encrypted() bool {
	_, ok := o.Object["sops"]
	return ok
}

// Unreadable reports whether SOPS has encrypted even what the object is, its kind among it.
func (o Object) Unreadable() bool { return strings.HasPrefix(o.GetKind(), "ENC[") }

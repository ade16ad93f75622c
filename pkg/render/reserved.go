package render

import "bytes"

// reserved reports whether a text writes annotations in which kustomize keeps notes for itself: it
// takes those that are written by hand for its own, and removes them at the end.
func reserved(text []byte) bool {
	// By their prefix, and by the names that they had before they had one, of kyaml/kio/kioutil.
	for _, note := range []string{"internal.config.kubernetes.io/", "config.kubernetes.io/index", "config.kubernetes.io/path", "config.k8s.io/id"} {
		if bytes.Contains(text, []byte(note)) {
			return true
		}
	}
	return false
}

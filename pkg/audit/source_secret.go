package audit

import (
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
)

// sourceSecrets lists the Secrets without which source-controller does not fetch a source, all of its own
// namespace.
//
// It follows, in source-controller's internal/controller, reconcileSource and getAuthOpts of
// gitrepository_controller.go, keychain of ocirepository_controller.go, reconcileSource of
// helmrepository_controller.go and setupCredentials of bucket_controller.go.
func sourceSecrets(it *item) []ref {
	if it.gk.Group != sourcev1.GroupVersion.Group {
		return nil
	}
	fields := map[string][][]string{
		sourcev1.GitRepositoryKind:  {{"secretRef"}, {"proxySecretRef"}, {"verify", "secretRef"}},
		sourcev1.OCIRepositoryKind:  {{"secretRef"}, {"certSecretRef"}, {"proxySecretRef"}, {"verify", "secretRef"}},
		sourcev1.HelmRepositoryKind: {{"secretRef"}, {"certSecretRef"}},
		sourcev1.BucketKind:         {{"secretRef"}, {"certSecretRef"}, {"proxySecretRef"}, {"sts", "secretRef"}, {"sts", "certSecretRef"}},
	}
	var out []ref
	for _, field := range fields[it.gk.Kind] {
		path := append(append([]string{"spec"}, field...), "name")
		if name := nestedString(it.Object.Object, path...); name != "" {
			out = append(out, ref{cluster: it.ref.cluster, kind: "Secret", namespace: it.GetNamespace(), name: name})
		}
	}
	return out
}

// source collects the Secrets of a source. A HelmRepository of an OCI registry is not fetched: it has no
// status, and passes every health check.
func (c *collector) source() {
	need := hard
	if servesItself(c.item) {
		need = unseen
	}
	for _, r := range sourceSecrets(c.item) {
		c.add(r.group, r.kind, r.namespace, r.name, false, need)
	}
}

// unfetched is a blocker that a source makes which was applied, and whose Secret is still to come.
func (r *replay) unfetched(kind blockerKind, source ref, it *item) (blocker, bool) {
	for _, src := range r.byRef[source] {
		for _, what := range sourceSecrets(src) {
			if r.toCome(what) {
				b := r.waitFor(kind, what, it)
				b.source = source
				return b, true
			}
		}
	}
	return blocker{}, false
}

// findGiven collects the Secrets of the sources that roots read: whoever created the source created them.
func (w *world) findGiven() {
	for what, list := range w.byRef {
		if what.group != sourcev1.GroupVersion.Group || what.cluster != "" || !w.isRootSource(what.String()) {
			continue
		}
		for _, it := range list {
			for _, secret := range sourceSecrets(it) {
				w.given[secret] = true
			}
		}
	}
}

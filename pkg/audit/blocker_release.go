package audit

// releaseBlockers are what keeps helm-controller from installing a release.
//
// It follows reconcileRelease and checkDependencies in helm-controller's
// internal/controller/helmrelease_controller.go.
func (r *replay) releaseBlockers(rel *release) []blocker {
	var out []blocker
	if rel.spec.Spec.Suspend {
		out = append(out, blocker{kind: bySuspended, what: rel.ref, item: rel.item})
	}
	for _, d := range rel.spec.Spec.DependsOn {
		key := releaseDependency(rel, d.Namespace, d.Name)
		dep, known := r.releases[key]
		switch {
		case known && (r.running[key] || d.ReadyExpr != "" && r.present[key]):
		case known:
			out = append(out, blocker{kind: byRelease, what: key, item: rel.item, on: []int{dep.tier}})
		case r.complete() && len(r.byRef[key]) == 0 && !r.declared(key):
			out = append(out, blocker{kind: byMissing, what: key, item: rel.item})
		}
	}
	if src, ok := chartSource(&rel.spec); ok {
		src.cluster = rel.ref.cluster
		switch makers := r.byRef[src]; {
		case len(makers) > 0 && suspended(makers[0]) && !servesItself(makers[0]):
			out = append(out, blocker{kind: bySuspended, what: src, item: makers[0]})
		case len(makers) == 0 && src.cluster == "" && r.complete() && !r.isRootSource(src.String()) && !r.declared(src):
			out = append(out, blocker{kind: byMissing, what: src, item: rel.item})
		}
	}
	for _, in := range releaseInputs(rel) {
		if r.toCome(in) {
			out = append(out, r.waitFor(byInput, in, rel.item))
		} else if b, ok := r.unfetched(byInput, in, rel.item); ok {
			out = append(out, b)
		}
	}
	ns := rel.namespace()
	created := rel.spec.Spec.Install != nil && rel.spec.Spec.Install.CreateNamespace
	if makers := r.namespaces[namespaceRef(rel.cluster(), ns)]; len(makers) > 0 && !created && !r.namespaceExists(rel.cluster(), ns) {
		out = append(out, blocker{kind: byNamespace, what: namespaceRef(rel.cluster(), ns), item: rel.item, on: itemTiers(makers)})
	}
	return out
}

// releaseAwaits lists the tiers that a release which cannot run waits for.
func (r *replay) releaseAwaits(key ref) []int {
	rel := r.releases[key]
	if !r.present[key] {
		return []int{rel.tier}
	}
	var on []int
	for _, b := range r.releaseBlockers(rel) {
		on = append(on, b.on...)
	}
	return on
}

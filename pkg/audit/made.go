package audit

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/tiers"
)

// madeBy lists the objects that a controller makes for an object, where git tells their names. Left
// out is what a ClusterExternalSecret makes: it picks its namespaces by their labels.
//
// It follows, of each kind, what creates the object:
//   - ExternalSecret: Reconcile and reconcileGenericTarget in external-secrets'
//     pkg/controllers/externalsecret/externalsecret_controller.go
//   - SealedSecret: Unseal in sealed-secrets' pkg/apis/sealedsecrets/v1alpha1/sealedsecret_expansion.go,
//     which sets name and namespace to its own, whatever the template says
//   - Certificate: getCertificateSecret in cert-manager's pkg/controller/certificates/issuing/internal/secret.go
//   - CloudNativePG's Cluster: reconcilePostgresSecrets and setupPostgresPKI in cloudnative-pg's
//     internal/controller/cluster_create.go and cluster_pki.go
//   - ObjectBucketClaim: newCredentialsSecret and newBucketConfigMap in lib-bucket-provisioner's
//     pkg/provisioner/resourcehandlers.go
//   - OnePasswordItem: handleOnePasswordItem in onepassword-operator's
//     internal/controller/onepassworditem_controller.go
//   - Vault's secrets: SyncSecret in vault-secrets-operator's helpers/secrets.go
func madeBy(it *item) []ref {
	object := it.Object.Object
	m := making{item: it}
	switch it.gk.String() {
	case "ExternalSecret.external-secrets.io":
		m.externalSecret(object)
	case "SealedSecret.bitnami.com", "OnePasswordItem.onepassword.com":
		m.add("", "Secret", it.GetName())
	case "Certificate.cert-manager.io":
		m.add("", "Secret", nestedString(object, "spec", "secretName"))
	case "Cluster.postgresql.cnpg.io":
		m.postgres(object)
	case "ObjectBucketClaim.objectbucket.io":
		m.add("", "Secret", it.GetName())
		m.add("", "ConfigMap", it.GetName())
	case "VaultStaticSecret.secrets.hashicorp.com", "VaultDynamicSecret.secrets.hashicorp.com", "VaultPKISecret.secrets.hashicorp.com":
		if create, _, _ := unstructured.NestedBool(object, "spec", "destination", "create"); create {
			m.add("", "Secret", nestedString(object, "spec", "destination", "name"))
		}
	}
	return m.made
}

type making struct {
	item *item
	made []ref
}

func (m *making) add(group, kind, name string) {
	if name == "" || strings.Contains(name, "${") {
		return
	}
	m.made = append(m.made, ref{cluster: m.item.ref.cluster, group: group, kind: kind, namespace: m.item.GetNamespace(), name: name})
}

func (m *making) externalSecret(object map[string]any) {
	switch nestedString(object, "spec", "target", "creationPolicy") {
	case "Merge", "None":
		return // it adds to what somebody else makes, or to nothing
	}
	name := nestedString(object, "spec", "target", "name")
	if name == "" {
		name = m.item.GetName()
	}
	gv, err := schema.ParseGroupVersion(nestedString(object, "spec", "target", "manifest", "apiVersion"))
	if kind := nestedString(object, "spec", "target", "manifest", "kind"); kind != "" && err == nil {
		m.add(gv.Group, kind, name)
		return
	}
	m.add("", "Secret", name)
}

// postgres lists the Secrets of a CloudNativePG cluster that the manifest does not name as given.
func (m *making) postgres(object map[string]any) {
	name := m.item.GetName()
	given := func(fields ...string) bool { return nestedString(object, append([]string{"spec"}, fields...)...) != "" }
	if on, _, _ := unstructured.NestedBool(object, "spec", "enableSuperuserAccess"); on && !given("superuserSecret", "name") {
		m.add("", "Secret", name+"-superuser")
	}
	_, replica, _ := unstructured.NestedMap(object, "spec", "replica")
	monolith := nestedString(object, "spec", "bootstrap", "initdb", "import", "type") == "monolith" && !given("bootstrap", "initdb", "database")
	if !replica && !monolith && !slices.ContainsFunc([]string{"initdb", "recovery", "pg_basebackup"}, func(way string) bool {
		return given("bootstrap", way, "secret", "name")
	}) {
		m.add("", "Secret", name+"-app")
	}
	if !given("certificates", "serverCASecret") || !given("certificates", "clientCASecret") {
		m.add("", "Secret", name+"-ca")
	}
	if !given("certificates", "serverTLSSecret") {
		m.add("", "Secret", name+"-server")
	}
	if !given("certificates", "replicationTLSSecret") {
		m.add("", "Secret", name+"-replication")
	}
}

// makes reports whether the item is not the object asked for but what a controller makes it for.
func (it *item) makes(what ref) bool { return it.ref != what }

// source names what one has to move to move an object that the item brings.
func (it *item) source(what ref) string {
	if it.makes(what) {
		return it.ID()
	}
	return what.String()
}

// bringing names an object that the item brings, and what it is made from.
func (it *item) bringing(what ref) string {
	if it.makes(what) {
		return fmt.Sprintf("%s (made from %s)", what, it.ID())
	}
	return what.String()
}

// bringing lists who brings an object: manifests of it, then objects for which a controller makes it,
// each in tier order.
func (w *world) bringing(what ref) []*item {
	made := w.made[what]
	if len(made) == 0 {
		return w.byRef[what]
	}
	return slices.Concat(w.byRef[what], made)
}

// broughtBefore reports whether an item has brought an object before the first pass of tier i: by
// being applied, or, where a controller makes the object, by having been waited for.
func (w *world) broughtBefore(i int, it *item, what ref) bool {
	if !it.makes(what) {
		return w.guaranteed(i, it) >= applied
	}
	return w.guaranteed(i, it) == healthy || w.awaitedItself(i, it, what)
}

// awaitedItself reports whether a tier that is ready before tier i names in its health checks the very
// object that a controller makes for one of its own.
func (w *world) awaitedItself(i int, it *item, what ref) bool {
	t := w.tiers[it.tier]
	return it.tier != i && w.before.Of(w.tiers[i].Key).Ready(t.Key) && !t.Kustomization.Spec.Wait &&
		tiers.Watches(t, what.group, what.kind, tiers.Key{Namespace: what.namespace, Name: what.name})
}

// fromOutside reports whether an object is made from values that a store outside of the cluster holds.
// Who can read the store can create the object by hand.
func (w *world) fromOutside(what ref) bool {
	return slices.ContainsFunc(w.made[what], func(it *item) bool {
		return it.gk.Group == "external-secrets.io" || it.gk.Group == "onepassword.com" || it.gk.Group == "secrets.hashicorp.com"
	})
}

// toCome reports whether an object is still to come: something in git brings it, and has not yet. What
// nothing in git brings is taken to be there, and so is what the configuration declares.
func (r *replay) toCome(what ref) bool {
	return !r.present[what] && (len(r.byRef[what]) > 0 || len(r.made[what]) > 0) && !r.declared(what)
}

// make marks the objects that controllers have made by now, and reports whether that was any.
func (r *replay) make() bool {
	changed := false
	for what, makers := range r.made {
		if !r.present[what] && slices.ContainsFunc(makers, func(it *item) bool { return r.present[it.ref] && len(r.makerBlockers(it)) == 0 }) {
			r.present[what], changed = true, true
		}
	}
	return changed
}

// saidOfMaker reports whether a tier waits for what an object is made from as well, and that lacks
// something: then it says all there is to say.
func (r *replay) saidOfMaker(i int, what ref) bool {
	return slices.ContainsFunc(r.made[what], func(it *item) bool {
		return it.tier == i && watches(r.tiers[i], it) && len(r.useBlockers(it)) > 0
	})
}

// makerBlockers are what keeps a controller from making anything for an object that was applied: the
// object lacks what it needs, or the controller does not run.
func (r *replay) makerBlockers(it *item) []blocker {
	out := r.useBlockers(it)
	controllers := r.controllers(it)
	if len(controllers) == 0 || slices.ContainsFunc(controllers, func(c *release) bool { return r.running[c.ref] }) {
		return out
	}
	for _, c := range controllers {
		out = append(out, blocker{kind: byRelease, what: c.ref, item: it, on: r.releaseAwaits(c.ref)})
	}
	return out
}

// controllers lists the releases of which one has to run before an object's controller does: those
// whose chart brings the kind. None where the kind is there before Flux, or what brings it is not known.
func (w *world) controllers(it *item) []*release {
	var out []*release
	for _, s := range w.supplies[kindRef(it.ref.cluster, it.gk)] {
		if s.there() {
			return nil
		}
		if c := w.releases[s.item.ref]; c != nil && s.sure {
			out = append(out, c)
		}
	}
	return out
}

// waitFor is a blocker that an object which is still to come makes, of a tier or an item of it.
func (r *replay) waitFor(kind blockerKind, what ref, it *item) blocker {
	b := blocker{kind: kind, what: what, item: it}
	if r.asking[what] {
		return b // it waits for itself: for a controller that waits for it
	}
	r.asking[what] = true
	defer delete(r.asking, what)
	for _, maker := range r.bringing(what) {
		if !maker.makes(what) || !r.present[maker.ref] {
			b.on = append(b.on, maker.tier)
			continue
		}
		for _, lack := range r.makerBlockers(maker) {
			b.on, b.lacks = append(b.on, lack.on...), append(b.lacks, lack.what)
		}
	}
	return b
}

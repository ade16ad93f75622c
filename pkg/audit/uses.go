package audit

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// use is one object that another names.
type use struct {
	ref
	// lasting says that what is missing when the user is created is never made good later.
	lasting bool
	need    need
}

// need says what a health check of the user makes of it that the used object is missing.
//
// It follows kstatus (fluxcd/cli-utils, pkg/kstatus/status): of kinds that it does not know it looks at
// the condition Ready alone. Ingresses, Gateways and routes have none, and always pass.
type need int

const (
	unseen need = iota // nothing
	likely             // it waits, unless there is another way that git does not show
	hard               // it waits for ever
)

// usesOf lists what an object names of other objects, optional references left out. It knows the
// kinds that the documentation of the rule unordered-use lists, and no more.
func usesOf(it *item) []use {
	c := collector{item: it}
	switch it.gk.String() {
	case "Pod":
		c.pod(it.Object.Object, "spec")
	case "Deployment.apps", "StatefulSet.apps", "DaemonSet.apps", "ReplicaSet.apps", "Job.batch":
		c.idle = scaledToZero(it)
		c.pod(it.Object.Object, "spec", "template", "spec")
		for _, claim := range list(it.Object.Object, "spec", "volumeClaimTemplates") {
			c.clusterWide("storage.k8s.io", "StorageClass", nestedString(claim, "spec", "storageClassName"), hard)
		}
	case "CronJob.batch":
		c.idle = true
		c.pod(it.Object.Object, "spec", "jobTemplate", "spec", "template", "spec")
	case "PersistentVolumeClaim":
		c.clusterWide("storage.k8s.io", "StorageClass", nestedString(it.Object.Object, "spec", "storageClassName"), likely)
	case "DataVolume.cdi.kubevirt.io":
		c.dataVolume(it.Object.Object)
	case "VirtualMachine.kubevirt.io":
		for _, dv := range list(it.Object.Object, "spec", "dataVolumeTemplates") {
			c.dataVolume(dv)
		}
	case "Cluster.postgresql.cnpg.io":
		c.clusterWide("storage.k8s.io", "StorageClass", nestedString(it.Object.Object, "spec", "storage", "storageClass"), likely)
		c.clusterWide("storage.k8s.io", "StorageClass", nestedString(it.Object.Object, "spec", "walStorage", "storageClass"), likely)
	case "Ingress.networking.k8s.io":
		c.clusterWide("networking.k8s.io", "IngressClass", cmp.Or(nestedString(it.Object.Object, "spec", "ingressClassName"), it.GetAnnotations()["kubernetes.io/ingress.class"]), unseen)
		for _, tls := range list(it.Object.Object, "spec", "tls") {
			c.add("", "Secret", it.GetNamespace(), nestedString(tls, "secretName"), false, unseen)
		}
		c.issuerAnnotations()
	case "Gateway.gateway.networking.k8s.io":
		c.clusterWide("gateway.networking.k8s.io", "GatewayClass", nestedString(it.Object.Object, "spec", "gatewayClassName"), unseen)
		c.certificates()
		c.issuerAnnotations()
	case "Certificate.cert-manager.io":
		c.issuer(nestedString(it.Object.Object, "spec", "issuerRef", "kind"), nestedString(it.Object.Object, "spec", "issuerRef", "name"), likely)
	case "ExternalSecret.external-secrets.io":
		c.store(it.Object.Object, "spec", "secretStoreRef")
		for _, from := range slices.Concat(list(it.Object.Object, "spec", "data"), list(it.Object.Object, "spec", "dataFrom")) {
			c.store(from, "sourceRef", "storeRef")
		}
	case "PushSecret.external-secrets.io":
		for _, store := range list(it.Object.Object, "spec", "secretStoreRefs") {
			c.store(store)
		}
	case "ClusterExternalSecret.external-secrets.io":
		c.store(it.Object.Object, "spec", "externalSecretSpec", "secretStoreRef")
	case "HelmRelease.helm.toolkit.fluxcd.io":
		c.release()
	}
	c.source()
	if it.gk.Group == "gateway.networking.k8s.io" && strings.HasSuffix(it.gk.Kind, "Route") {
		c.parents()
	}
	return c.uses
}

type collector struct {
	item *item
	uses []use
	idle bool // no pod of it has to run for it to be healthy
}

func (c *collector) add(group, kind, namespace, name string, lasting bool, n need) {
	if name == "" || strings.Contains(name, "${") {
		return
	}
	if c.idle {
		n = unseen
	}
	c.uses = append(c.uses, use{ref{cluster: c.item.ref.cluster, group: group, kind: kind, namespace: namespace, name: name}, lasting, n})
}

func (c *collector) clusterWide(group, kind, name string, n need) {
	c.add(group, kind, "", name, false, n)
}

func (c *collector) local(kind, name string) {
	c.add("", kind, c.item.GetNamespace(), name, false, hard)
}

// pod collects from a pod's spec what kubelet and admission look up by name.
func (c *collector) pod(object map[string]any, path ...string) {
	spec, ok, _ := unstructured.NestedMap(object, path...)
	if !ok {
		return
	}
	// The API server takes the old name of the field for the new one.
	if name := cmp.Or(nestedString(spec, "serviceAccountName"), nestedString(spec, "serviceAccount")); name != "default" {
		c.local("ServiceAccount", name)
	}
	for _, s := range list(spec, "imagePullSecrets") {
		c.add("", "Secret", c.item.GetNamespace(), nestedString(s, "name"), false, likely)
	}
	if name := nestedString(spec, "priorityClassName"); !strings.HasPrefix(name, "system-") {
		c.clusterWide("scheduling.k8s.io", "PriorityClass", name, hard)
	}
	c.clusterWide("node.k8s.io", "RuntimeClass", nestedString(spec, "runtimeClassName"), hard)
	for _, v := range list(spec, "volumes") {
		c.volume(v)
	}
	for _, field := range []string{"containers", "initContainers"} {
		for _, container := range list(spec, field) {
			c.container(container)
		}
	}
}

func (c *collector) volume(v map[string]any) {
	if !optional(v, "configMap") {
		c.local("ConfigMap", nestedString(v, "configMap", "name"))
	}
	if !optional(v, "secret") {
		c.local("Secret", nestedString(v, "secret", "secretName"))
	}
	c.local("PersistentVolumeClaim", nestedString(v, "persistentVolumeClaim", "claimName"))
	if nestedString(v, "csi", "driver") == "secrets-store.csi.k8s.io" {
		c.add("secrets-store.csi.x-k8s.io", "SecretProviderClass", c.item.GetNamespace(), nestedString(v, "csi", "volumeAttributes", "secretProviderClass"), false, hard)
	}
	for _, s := range list(v, "projected", "sources") {
		if !optional(s, "configMap") {
			c.local("ConfigMap", nestedString(s, "configMap", "name"))
		}
		if !optional(s, "secret") {
			c.local("Secret", nestedString(s, "secret", "name"))
		}
	}
}

func (c *collector) container(container map[string]any) {
	for _, from := range list(container, "envFrom") {
		if !optional(from, "configMapRef") {
			c.local("ConfigMap", nestedString(from, "configMapRef", "name"))
		}
		if !optional(from, "secretRef") {
			c.local("Secret", nestedString(from, "secretRef", "name"))
		}
	}
	for _, env := range list(container, "env") {
		if !optional(env, "valueFrom", "configMapKeyRef") {
			c.local("ConfigMap", nestedString(env, "valueFrom", "configMapKeyRef", "name"))
		}
		if !optional(env, "valueFrom", "secretKeyRef") {
			c.local("Secret", nestedString(env, "valueFrom", "secretKeyRef", "name"))
		}
	}
}

// dataVolume: KubeVirt's CDI takes access mode and volume mode from the StorageProfile that bears
// the name of the class, once, when it makes the claim: what it finds then is what the disk keeps
// (renderPvcSpec in containerized-data-importer's pkg/controller/datavolume/util.go).
func (c *collector) dataVolume(object map[string]any) {
	if class := nestedString(object, "spec", "storage", "storageClassName"); class != "" {
		c.clusterWide("storage.k8s.io", "StorageClass", class, likely)
		c.add("cdi.kubevirt.io", "StorageProfile", "", class, true, unseen)
	}
	c.clusterWide("storage.k8s.io", "StorageClass", nestedString(object, "spec", "pvc", "storageClassName"), likely)
}

func (c *collector) issuerAnnotations() {
	a := c.item.GetAnnotations()
	c.issuer("ClusterIssuer", a["cert-manager.io/cluster-issuer"], unseen)
	c.issuer("Issuer", a["cert-manager.io/issuer"], unseen)
}

func (c *collector) issuer(kind, name string, n need) {
	if kind == "ClusterIssuer" {
		c.clusterWide("cert-manager.io", kind, name, n)
		return
	}
	c.add("cert-manager.io", "Issuer", c.item.GetNamespace(), name, false, n)
}

func (c *collector) store(object map[string]any, path ...string) {
	kind, name := nestedString(object, append(path, "kind")...), nestedString(object, append(path, "name")...)
	if kind == "ClusterSecretStore" {
		c.clusterWide("external-secrets.io", kind, name, hard)
		return
	}
	c.add("external-secrets.io", "SecretStore", c.item.GetNamespace(), name, false, hard)
}

// release collects what helm-controller reads of other objects before it installs a chart, the chart's
// source left out: helm-controller watches sources, and goes on the moment they are there.
func (c *collector) release() {
	for _, v := range list(c.item.Object.Object, "spec", "valuesFrom") {
		if on, _, _ := unstructured.NestedBool(v, "optional"); !on {
			c.local(nestedString(v, "kind"), nestedString(v, "name"))
		}
	}
	c.local("Secret", nestedString(c.item.Object.Object, "spec", "kubeConfig", "secretRef", "name"))
	c.add("", "ServiceAccount", c.item.GetNamespace(), nestedString(c.item.Object.Object, "spec", "serviceAccountName"), false, likely)
}

// certificates collects the Secrets of a Gateway's listeners.
func (c *collector) certificates() {
	for _, l := range list(c.item.Object.Object, "spec", "listeners") {
		for _, r := range list(l, "tls", "certificateRefs") {
			if kind := nestedString(r, "kind"); kind == "" || kind == "Secret" {
				c.add("", "Secret", cmp.Or(nestedString(r, "namespace"), c.item.GetNamespace()), nestedString(r, "name"), false, unseen)
			}
		}
	}
}

// parents collects the Gateways that a route attaches to.
func (c *collector) parents() {
	for _, p := range list(c.item.Object.Object, "spec", "parentRefs") {
		kind := nestedString(p, "kind")
		if kind != "" && kind != "Gateway" {
			continue
		}
		ns := nestedString(p, "namespace")
		if ns == "" {
			ns = c.item.GetNamespace()
		}
		c.add("gateway.networking.k8s.io", "Gateway", ns, nestedString(p, "name"), false, unseen)
	}
}

func optional(object map[string]any, path ...string) bool {
	v, _, _ := unstructured.NestedBool(object, append(path, "optional")...)
	return v
}

func list(object map[string]any, path ...string) []map[string]any {
	v, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	items, _ := v.([]any)
	var out []map[string]any
	for _, i := range items {
		if m, ok := i.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

func scaledToZero(it *item) bool {
	n, found, err := unstructured.NestedInt64(it.Object.Object, "spec", "replicas")
	return found && err == nil && n == 0
}

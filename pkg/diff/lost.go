package diff

import (
	"fmt"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/pkg/tiers"
)

// lost says what does not survive when an object is deleted, even if it is created again at once,
// and how heavy that is.
func (c *comparison) lost(o render.Object) (string, tiers.Severity) {
	gk := o.GroupVersionKind().GroupKind()
	switch gk.String() {
	case "PersistentVolumeClaim":
		return "the volume and the data on it, where the reclaim policy is Delete", tiers.Error
	case "PersistentVolume":
		return "the binding of its claim, and the data where the reclaim policy is Delete", tiers.Error
	case "Namespace":
		return fmt.Sprintf("everything in the namespace: %d objects in git, and what else lives there", c.inside(o.GetName())), tiers.Error
	case "CustomResourceDefinition.apiextensions.k8s.io":
		return fmt.Sprintf("every %s on the cluster: %d in git", definedKind(o).Kind, c.instances(definedKind(o))), tiers.Error
	case "HelmRelease.helm.toolkit.fluxcd.io":
		return "the release is uninstalled: all that its chart made, and the data of the volumes it claims", tiers.Error
	case "Kustomization." + kustomizev1.GroupVersion.Group:
		return c.lostTier(tiers.Key{Namespace: o.GetNamespace(), Name: o.GetName()})
	case "StatefulSet.apps":
		return "its pods stop; the claims of its volumeClaimTemplates stay unless its retention policy deletes them", tiers.Warning
	case "Deployment.apps", "DaemonSet.apps", "ReplicaSet.apps", "Pod":
		return "its pods stop and start again", tiers.Warning
	case "Job.batch":
		return "it runs again", tiers.Warning
	case "Service":
		return "its addresses: cluster IP, load balancer", tiers.Warning
	case "Secret", "ConfigMap":
		return "it is away for a while: pods that start then wait for it", tiers.Warning
	case "StorageProfile.cdi.kubevirt.io":
		return "until it is applied again CDI's own guess stands, and a disk made then keeps its access mode for good", tiers.Warning
	case "StorageClass.storage.k8s.io":
		return "claims made in between are not provisioned", tiers.Warning
	}
	if keepsData(gk) {
		return "what its operator keeps for it: instances, volumes, data", tiers.Error
	}
	return "it is away for a while, with what hangs on it", tiers.Warning
}

// keepsData lists the kinds of operators behind which there is data that goes with the object.
func keepsData(gk schema.GroupKind) bool {
	return slices.Contains([]string{
		"Cluster.postgresql.cnpg.io", "DataVolume.cdi.kubevirt.io", "VirtualMachine.kubevirt.io", "Kafka.kafka.strimzi.io",
		"postgresql.acid.zalan.do", "Elasticsearch.elasticsearch.k8s.elastic.co", "CephCluster.ceph.rook.io", "CephBlockPool.ceph.rook.io",
		"CephFilesystem.ceph.rook.io", "PerconaXtraDBCluster.pxc.percona.com", "MariaDB.k8s.mariadb.com", "Redis.redis.redis.opstreelabs.in",
		"Tenant.minio.min.io", "RabbitmqCluster.rabbitmq.com", "VolumeSnapshot.snapshot.storage.k8s.io",
	}, gk.String())
}

// inside counts the objects that git puts into a namespace.
func (c *comparison) inside(namespace string) int {
	n := 0
	for id := range c.before.owners {
		if id.Namespace == namespace {
			n++
		}
	}
	return n
}

func (c *comparison) instances(gk schema.GroupKind) int {
	n := 0
	for id := range c.before.owners {
		if id.GroupKind == gk {
			n++
		}
	}
	return n
}

func definedKind(o render.Object) schema.GroupKind {
	group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
	return schema.GroupKind{Group: group, Kind: kind}
}

// lostTier says what goes with a Kustomization that is deleted, even if it is created again.
func (c *comparison) lostTier(k tiers.Key) (string, tiers.Severity) {
	t := c.before.tier(k)
	if t == nil {
		return "all that it owns", tiers.Error
	}
	policy := t.Kustomization.GetDeletionPolicy()
	if t.Suspend || policy == kustomizev1.DeletionPolicyOrphan || policy == kustomizev1.DeletionPolicyMirrorPrune && !t.Kustomization.Spec.Prune {
		return "nothing but its status: it does not delete what it owns", tiers.Info
	}
	return fmt.Sprintf("all that it owns: %d objects in git", len(t.Objects)), tiers.Error
}

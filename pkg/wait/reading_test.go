package wait

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/standup-sh/standup/pkg/flux"
)

// The messages below are those that kustomize-controller 1.9 and a Kubernetes 1.36 API server print,
// with names of our own.
func TestReadFailure(t *testing.T) {
	tests := map[string]struct {
		reason, message string
		spec            func(*kustomizev1.Kustomization)
		want            Diagnosis
	}{
		"kind missing": {
			reason:  meta.ReconciliationFailedReason,
			message: "StorageProfile/fast dry-run failed: no matches for kind \"StorageProfile\" in version \"cdi.kubevirt.io/v1beta1\"\nNamespace/cdi created\n",
			want:    Diagnosis{Cause: KindMissing, Object: "StorageProfile/fast", Summary: "kind StorageProfile of cdi.kubevirt.io/v1beta1 is not known to the API server"},
		},
		"webhook without endpoints": {
			reason:  meta.ReconciliationFailedReason,
			message: `Ingress/shop/web dry-run failed (InternalError): Internal error occurred: failed calling webhook "validate.ingress.example": failed to call webhook: Post "https://ingress-admission.ingress.svc:443/networking/v1/ingresses?timeout=10s": no endpoints available for service "ingress-admission"`,
			want: Diagnosis{
				Cause: WebhookDown, Object: "Service/ingress/ingress-admission",
				Summary: `webhook validate.ingress.example does not answer: no endpoints available for service "ingress-admission"`,
				Command: "kubectl -n ingress get pods,endpointslices",
			},
		},
		"webhook whose service is missing": {
			reason:  meta.ReconciliationFailedReason,
			message: `Certificate/shop/tls dry-run failed (InternalError): Internal error occurred: failed calling webhook "webhook.certs.example": failed to call webhook: Post "https://certs-webhook.certs.svc:443/validate?timeout=30s": service "certs-webhook" not found`,
			want: Diagnosis{
				Cause: WebhookDown, Object: "Service/certs/certs-webhook",
				Summary: `webhook webhook.certs.example does not answer: service "certs-webhook" not found`,
				Command: "kubectl -n certs get pods,endpointslices",
			},
		},
		"webhook that refuses connections": {
			reason:  meta.ReconciliationFailedReason,
			message: `Deployment/shop/web dry-run failed (InternalError): Internal error occurred: failed calling webhook "mutate.policy.svc-fail": failed to call webhook: Post "https://policy-svc.policy.svc:443/mutate/fail?timeout=10s": dial tcp 10.96.7.7:443: connect: connection refused`,
			want: Diagnosis{
				Cause: WebhookDown, Object: "Service/policy/policy-svc",
				Summary: `webhook mutate.policy.svc-fail does not answer: dial tcp 10.96.7.7:443: connect: connection refused`,
				Command: "kubectl -n policy get pods,endpointslices",
			},
		},
		"conversion webhook": {
			reason:  meta.ReconciliationFailedReason,
			message: `Bundle/shop/x dry-run failed: conversion webhook for trust.example/v1alpha1, Kind=Bundle failed: Post "https://trust.certs.svc:443/convert?timeout=30s": no endpoints available for service "trust"`,
			want: Diagnosis{
				Cause: WebhookDown, Object: "Service/certs/trust",
				Summary: `conversion webhook of Bundle (trust.example/v1alpha1) does not answer: no endpoints available for service "trust"`,
				Command: "kubectl -n certs get pods,endpointslices",
			},
		},
		"webhook that says no": {
			reason:  meta.ReconciliationFailedReason,
			message: `Pod/shop/web dry-run failed (Forbidden): admission webhook "labels.policy.example" denied the request: label team is required`,
			want: Diagnosis{
				Cause: AdmissionDenied, Object: "Pod/shop/web",
				Summary: `webhook labels.policy.example refuses Pod/shop/web: label team is required`,
			},
		},
		"namespace missing": {
			reason:  meta.ReconciliationFailedReason,
			message: `ConfigMap/shop/web not found: namespaces "shop" not found`,
			want: Diagnosis{
				Cause: NamespaceMissing, Object: "Namespace/shop", Summary: "namespace shop does not exist",
				Hint: "the tier that creates it must come before this one", Command: "kubectl create namespace shop",
			},
		},
		"namespace terminating": {
			reason:  meta.ReconciliationFailedReason,
			message: `ConfigMap/shop/web apply failed: configmaps "web" is forbidden: unable to create new content in namespace shop because it is being terminated`,
			want:    Diagnosis{Cause: NamespaceTerminating, Object: "Namespace/shop", Summary: "namespace shop is being deleted", Command: "kubectl get namespace shop -o yaml"},
		},
		"namespace unset": {
			reason:  meta.ReconciliationFailedReason,
			message: `ConfigMap/web namespace not specified: the server could not find the requested resource`,
			want: Diagnosis{
				Cause: NamespaceUnset, Object: "ConfigMap/web", Summary: "ConfigMap/web is namespaced and has no namespace",
				Hint: "set metadata.namespace, or spec.targetNamespace on the Kustomization",
			},
		},
		"service account may not": {
			reason:  meta.ReconciliationFailedReason,
			message: `Deployment/shop/web dry-run failed (Forbidden): deployments.apps "web" is forbidden: User "system:serviceaccount:team-a:deployer" cannot patch resource "deployments" in API group "apps" in the namespace "shop"`,
			want: Diagnosis{
				Cause: Forbidden, Object: "ServiceAccount/team-a/deployer",
				Summary: "ServiceAccount/team-a/deployer may not patch deployments in namespace shop",
				Command: "kubectl auth can-i patch deployments.apps --as=system:serviceaccount:team-a:deployer -n shop",
			},
		},
		"service account may not, in the whole cluster": {
			reason:  meta.ReconciliationFailedReason,
			message: `Namespace/shop dry-run failed (Forbidden): namespaces "shop" is forbidden: User "system:serviceaccount:team-a:deployer" cannot patch resource "namespaces" in API group "" in the namespace "shop"`,
			want: Diagnosis{
				Cause: Forbidden, Object: "ServiceAccount/team-a/deployer",
				Summary: "ServiceAccount/team-a/deployer may not patch namespaces in namespace shop",
				Command: "kubectl auth can-i patch namespaces --as=system:serviceaccount:team-a:deployer -n shop",
			},
		},
		"cluster role": {
			reason:  meta.ReconciliationFailedReason,
			message: `ClusterRole/ops dry-run failed (Forbidden): clusterroles.rbac.authorization.k8s.io "ops" is forbidden: User "system:serviceaccount:team-a:deployer" cannot patch resource "clusterroles" in API group "rbac.authorization.k8s.io" at the cluster scope`,
			want: Diagnosis{
				Cause: Forbidden, Object: "ServiceAccount/team-a/deployer",
				Summary: "ServiceAccount/team-a/deployer may not patch clusterroles in the whole cluster",
				Command: "kubectl auth can-i patch clusterroles.rbac.authorization.k8s.io --as=system:serviceaccount:team-a:deployer -A",
			},
		},
		"pod whose service account comes in the same pass": {
			reason:  meta.ReconciliationFailedReason,
			message: `Pod/shop/probe dry-run failed (Forbidden): pods "probe" is forbidden: error looking up service account shop/probe: serviceaccount "probe" not found`,
			want: Diagnosis{
				Cause: Forbidden, Object: "ServiceAccount/shop/probe", Summary: "Pod/shop/probe runs as ServiceAccount/shop/probe, which does not exist yet",
				Hint: "the ServiceAccount must be applied before the Pod", Command: "kubectl -n shop get serviceaccount probe",
			},
		},
		"quota": {
			reason:  meta.ReconciliationFailedReason,
			message: `Pod/shop/probe dry-run failed (Forbidden): pods "probe" is forbidden: exceeded quota: small, requested: pods=1, used: pods=3, limited: pods=3`,
			want:    Diagnosis{Cause: Forbidden, Object: "Pod/shop/probe", Summary: "Pod/shop/probe is refused: exceeded quota: small, requested: pods=1, used: pods=3, limited: pods=3"},
		},
		"cross-namespace reference": {
			reason:  "AccessDenied",
			message: `can't access 'GitRepository/shared/fleet', cross-namespace references have been blocked`,
			want: Diagnosis{
				Cause: CrossNamespace, Object: "GitRepository/shared/fleet",
				Summary: "GitRepository/shared/fleet is in another namespace, and the controllers run with --no-cross-namespace-refs",
				Hint:    "put the source into the tier's own namespace",
			},
		},
		"kustomize build": {
			reason:  meta.BuildFailedReason,
			message: `kustomize build failed: accumulating resources: accumulation err='accumulating resources from 'web.yaml': open /tmp/kustomization-1/apps/web.yaml: no such file or directory': must build at directory: '/tmp/kustomization-1/apps/web.yaml': file is not directory`,
			want: Diagnosis{
				Cause:   BuildFailed,
				Summary: `kustomize cannot build apps: accumulating resources: accumulation err='accumulating resources from 'web.yaml': open apps/web.yaml: no such file or directory': must build at directory: 'apps/web.yaml': file is not directory`,
				Command: "kubectl kustomize apps",
			},
		},
		"substituteFrom": {
			reason:  meta.BuildFailedReason,
			message: `post build failed for 'ConfigMap.v1.[noGrp]/web': substitute from 'ConfigMap/cluster-vars' error: configmaps "cluster-vars" not found`,
			want: Diagnosis{
				Cause: SubstituteMissing, Object: "ConfigMap/flux-system/cluster-vars",
				Summary: "ConfigMap flux-system/cluster-vars, named by postBuild.substituteFrom, does not exist",
				Command: "kubectl -n flux-system get configmap cluster-vars",
			},
		},
		"variable": {
			reason:  meta.BuildFailedReason,
			message: `post build failed for 'ConfigMap.v1.[noGrp]/web': envsubst error: variable substitution failed: variable not set (strict mode): "DOMAIN"`,
			want: Diagnosis{
				Cause: VariableMissing, Summary: "variable ${DOMAIN} in web has no value and no default",
				Hint: "define DOMAIN in spec.postBuild.substitute or substituteFrom, or write ${DOMAIN:=default}",
			},
		},
		"malformed substitution": {
			reason:  meta.BuildFailedReason,
			message: `post build failed for 'ConfigMap.v1.[noGrp]/web': envsubst error: variable substitution failed: unable to parse variable name`,
			want: Diagnosis{
				Cause: SubstituteFailed, Summary: "substituting variables in web: unable to parse variable name",
				Hint: "write $$ for a literal $, or annotate the object with kustomize.toolkit.fluxcd.io/substitute: disabled",
			},
		},
		"decryption key missing": {
			reason:  meta.BuildFailedReason,
			message: `secrets "sops-age" not found`,
			spec: func(k *kustomizev1.Kustomization) {
				k.Spec.Decryption = &kustomizev1.Decryption{Provider: "sops", SecretRef: &meta.LocalObjectReference{Name: "sops-age"}}
			},
			want: Diagnosis{
				Cause: DecryptionKey, Object: "Secret/flux-system/sops-age", Summary: "the decryption key Secret/flux-system/sops-age does not exist",
				Command: "kubectl -n flux-system get secret sops-age",
			},
		},
		"decryption key that does not fit": {
			reason:  meta.BuildFailedReason,
			message: `decryption failed for 'Secret.v1.[noGrp]/token': cannot get sops data key: Error getting data key: 0 successful groups required, got 0`,
			want: Diagnosis{
				Cause: DecryptionKey, Summary: "no key that the controller has opens token",
				Hint: "the Secret of spec.decryption.secretRef must hold the private key of one of the file's recipients",
			},
		},
		"encrypted without decryption": {
			reason:  meta.ReconciliationFailedReason,
			message: `Secret/shop/token is SOPS encrypted, configuring decryption is required for this secret to be reconciled`,
			want: Diagnosis{
				Cause: DecryptionNotSet, Summary: "an encrypted Secret in a tier without spec.decryption",
				Hint: "set spec.decryption.provider: sops on the Kustomization",
			},
		},
		"path": {
			reason:  meta.ArtifactFailedReason,
			message: `kustomization path not found: stat /tmp/kustomization-2/apps: no such file or directory`,
			want:    Diagnosis{Cause: PathMissing, Summary: "the revision has no folder apps", Hint: "correct spec.path, or the folder's name"},
		},
		"artifact": {
			reason:  meta.ArtifactFailedReason,
			message: `failed to download archive: GET http://source-controller.flux-system.svc.cluster.local./gitrepository/flux-system/flux-system/abc.tar.gz giving up after 10 attempt(s): dial tcp 10.96.1.1:80: connect: connection refused`,
			want: Diagnosis{
				Cause: ArtifactDownload, Summary: "kustomize-controller cannot download the artifact from source-controller",
				Command: "kubectl -n flux-system get deployment source-controller",
			},
		},
		"immutable": {
			reason:  meta.ReconciliationFailedReason,
			message: `Deployment/shop/web dry-run failed (Invalid): Deployment.apps "web" is invalid: spec.selector: Invalid value: {"matchLabels":{"app":"b"}}: field is immutable`,
			want: Diagnosis{
				Cause: Immutable, Object: "Deployment/shop/web", Summary: "a field of Deployment/shop/web cannot be changed",
				Hint: "annotate it with kustomize.toolkit.fluxcd.io/force: enabled in git to have it re-created",
			},
		},
		"schema": {
			reason:  meta.ReconciliationFailedReason,
			message: `Cluster/db/main dry-run failed: failed to create typed patch object (db/main; postgresql.example/v1, Kind=Cluster): .spec.storageClass: field not declared in schema`,
			want: Diagnosis{
				Cause: Invalid, Object: "Cluster/db/main",
				Summary: "Cluster/db/main does not fit the schema that the cluster serves: .spec.storageClass: field not declared in schema",
			},
		},
		"secret value in a validation error": {
			reason:  meta.ReconciliationFailedReason,
			message: `Secret/shop/token dry-run failed (Invalid): Secret "token" is invalid: metadata.labels: Invalid value: "hunter2-and-more": must be no more than 63 bytes`,
			want: Diagnosis{
				Cause: Invalid, Object: "Secret/shop/token",
				Summary: `the API server refuses Secret/shop/token: Secret "token" is invalid: metadata.labels: Invalid value: "*****": must be no more than 63 bytes`,
			},
		},
		"definitions that do not become ready": {
			reason:  meta.ReconciliationFailedReason,
			message: "timeout waiting for: [CustomResourceDefinition/widgets.example.com status: 'InProgress', Namespace/shop status: 'Terminating']\nCustomResourceDefinition/widgets.example.com created\n",
			want: Diagnosis{
				Cause: StageTimeout, Object: "CustomResourceDefinition/widgets.example.com",
				Summary: "CustomResourceDefinition/widgets.example.com and 1 more are not ready within the minute that Flux gives definitions and classes",
				Waiting: []WaitingObject{{ID: "CustomResourceDefinition/widgets.example.com", Status: "InProgress"}, {ID: "Namespace/shop", Status: "Terminating"}},
			},
		},
		"expression": {
			reason:  meta.InvalidCELExpressionReason,
			message: "Reconciliation failed terminally due to configuration error: failed to evaluate dependency infra: failed to parse the CEL expression",
			want: Diagnosis{
				Cause: ExpressionInvalid, Summary: "a CEL expression of the Kustomization does not compile",
				Hint: "correct readyExpr or healthCheckExprs in git",
			},
		},
		"not understood": {
			reason:  meta.ReconciliationFailedReason,
			message: "the moon is in the wrong house",
			want:    Diagnosis{Cause: NotUnderstood, Summary: "Flux reports ReconciliationFailed"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			k := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "apps"}}
			k.Spec.Path = "./apps"
			if test.spec != nil {
				test.spec(k)
			}
			got := newReader(DefaultFluxNamespace).failure(k, flux.Status{Reason: test.reason, Message: test.message})
			got.FluxMessage, got.MissingKinds = "", nil
			compare(t, test.want, got)
		})
	}
}

func TestMask(t *testing.T) {
	for in, want := range map[string]string{
		`ConfigMap/a/b dry-run failed (Invalid): x: Invalid value: "visible"`:             `ConfigMap/a/b dry-run failed (Invalid): x: Invalid value: "visible"`,
		`Secret/a/b dry-run failed (Invalid): x: Invalid value: "s3cr3t \" quoted": bad`:  `Secret/a/b dry-run failed (Invalid): x: Invalid value: "*****": bad`,
		`unable to clone 'https://jo:hunter2@git.example/fleet': authentication required`: `unable to clone 'https://*****@git.example/fleet': authentication required`,
		`401 with Authorization: Bearer abcdef0123456789`:                                 `401 with Authorization: Bearer *****`,
		`token=abcdef123&x=1`: `token=*****&x=1`,
		`AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQQQ is not a recipient`:                         `***** is not a recipient`,
		`failed to get secret 'flux-system/flux-system': secrets "flux-system" not found`: `failed to get secret 'flux-system/flux-system': secrets "flux-system" not found`,
	} {
		if got := Mask(in); got != want {
			t.Errorf("Mask(%q)\n got %q\nwant %q", in, got, want)
		}
	}
}

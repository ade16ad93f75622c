package wait

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"

	"github.com/standup-sh/standup/pkg/flux"
)

// A reading turns one text into the cause it stands for. The groups of its pattern fill the
// templates of object, summary, hint and command as $1, $2, …
type reading struct {
	pattern *regexp.Regexp
	cause   Cause
	object  string
	summary string
	hint    string
	command string
}

func read(pattern string, cause Cause, object, summary, hint, command string) reading {
	return reading{regexp.MustCompile(pattern), cause, object, summary, hint, command}
}

// applied is the object a text of fluxcd/pkg's ssa begins with (ssa/errors/errors.go and
// manager_apply.go there): "Kind/namespace/name dry-run failed (Reason): …".
const applied = `(?s)(?:^|.*?\n)([A-Z]\w*/\S+) (?:dry-run failed|apply failed|not found|namespace not specified)[^:]*: `

// buildReadings are the texts of a pass that failed before it applied anything: build in
// kustomize-controller's internal/controller/kustomization_controller.go, the decryptor's
// internal/decryptor/decryptor.go, and fluxcd/pkg's kustomize/kustomize_varsub.go and envsubst.
func buildReadings() []reading {
	return []reading{
		read(`substitute from '(ConfigMap|Secret)/([^']+)' error: .*not found`, SubstituteMissing, "$1/{ns}/$2",
			"$1 {ns}/$2, named by postBuild.substituteFrom, does not exist", "", "kubectl -n {ns} get $1 $2"),
		read(`substitute from '(ConfigMap|Secret)/([^']+)' error: (.*)`, SubstituteMissing, "$1/{ns}/$2",
			"$1 {ns}/$2, named by postBuild.substituteFrom, cannot be read: $3", "", "kubectl -n {ns} get $1 $2"),
		read(`post build failed for '([^']*)/([^'/]+)': .*variable not set \(strict mode\): "([^"]+)"`, VariableMissing, "",
			"variable $${$3} in $2 has no value and no default",
			"define $3 in spec.postBuild.substitute or substituteFrom, or write $${$3:=default}", ""),
		read(`variable not set \(strict mode\): "([^"]+)"`, VariableMissing, "",
			"variable $${$1} has no value and no default", "define $1 in spec.postBuild.substitute or substituteFrom", ""),
		read(`post build failed for '([^']*)/([^'/]+)': (?:envsubst error: )?(?:variable substitution failed: )?(.*)`, SubstituteFailed, "",
			"substituting variables in $2: $3", "write $$$$ for a literal $$, or annotate the object with kustomize.toolkit.fluxcd.io/substitute: disabled", ""),
		read(`cannot get (\S+) (?:SOPS age )?decryption Secret '([^'/]+)/([^']+)': (.*)`, DecryptionKey, "Secret/$2/$3",
			"the decryption key Secret/$2/$3 cannot be read: $4", "", "kubectl -n $2 get secret $3"),
		read(`failed to import '([^']+)' data from \S+ (?:SOPS age )?decryption Secret '([^'/]+)/([^']+)'`, DecryptionKey, "Secret/$2/$3",
			"entry $1 of Secret/$2/$3 is not a key that SOPS can use", "", "kubectl -n $2 describe secret $3"),
		read(`decryption failed for '([^']*)/([^'/]+)': .*cannot get sops data key`, DecryptionKey, "",
			"no key that the controller has opens $2", "the Secret of spec.decryption.secretRef must hold the private key of one of the file's recipients", ""),
		read(`error decrypting sources: .*cannot get sops data key`, DecryptionKey, "",
			"no key that the controller has opens a file of the build", "the Secret of spec.decryption.secretRef must hold the private key of one of the file's recipients", ""),
		read(`(?:decryption failed for '[^']*/([^'/]+)'|error decrypting sources): (.*)`, DecryptionFailed, "",
			"decrypting $1: $2", "", ""),
		read(`is SOPS encrypted, configuring decryption is required`, DecryptionNotSet, "",
			"an encrypted Secret in a tier without spec.decryption", "set spec.decryption.provider: sops on the Kustomization", ""),
		read(`kustomization path not found: .*`, PathMissing, "", "the revision has no folder {path}", "correct spec.path, or the folder's name", ""),
		read(`kustomize build failed: (.*)`, BuildFailed, "", "kustomize cannot build {path}: $1", "", "kubectl kustomize {path}"),
		read(`failed to decode Kubernetes (?:YAML from (\S+)|apiVersion, kind and name from).*`, BuildFailed, "",
			"not a Kubernetes object: $1", "", ""),
	}
}

// applyReadings are the texts of a pass that failed while it applied, in the order in which they
// are tried. What precedes the colon is fluxcd/pkg's, what follows is the API server's.
func applyReadings() []reading {
	return []reading{
		read(`failed calling webhook "([^"]+)": .*?https?://([^./\s]+)\.([^./\s]+)\.svc\S*: (.*)`, WebhookDown, "Service/$3/$2",
			"webhook $1 does not answer: $4", "", "kubectl -n $3 get pods,endpointslices"),
		read(`failed calling webhook "([^"]+)": (.*)`, WebhookDown, "", "webhook $1 does not answer: $2", "",
			"kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations"),
		read(`conversion webhook for ([^,]+), Kind=(\w+) failed: .*?https?://([^./\s]+)\.([^./\s]+)\.svc\S*: (.*)`, WebhookDown, "Service/$4/$3",
			"conversion webhook of $2 ($1) does not answer: $5", "", "kubectl -n $4 get pods,endpointslices"),
		read(applied+`.*admission webhook "([^"]+)" denied the request:? ?(.*)`, AdmissionDenied, "$1", "webhook $2 refuses $1: $3", "", ""),
		read(applied+`.*ValidatingAdmissionPolicy '([^']+)'.* denied request: (.*)`, AdmissionDenied, "$1", "policy $2 refuses $1: $3", "", ""),
		read(`namespaces "([^"]+)" not found`, NamespaceMissing, "Namespace/$1", "namespace $1 does not exist",
			"the tier that creates it must come before this one", "kubectl create namespace $1"),
		read(`unable to create new content in namespace (\S+) because it is being terminated`, NamespaceTerminating, "Namespace/$1",
			"namespace $1 is being deleted", "", "kubectl get namespace $1 -o yaml"),
		read(`(?:^|\n)([A-Z]\w*/\S+) namespace not specified: `, NamespaceUnset, "$1", "$1 is namespaced and has no namespace",
			"set metadata.namespace, or spec.targetNamespace on the Kustomization", ""),
		read(`cannot impersonate resource "([^"]+)"`, ImpersonationDenied, "", "kustomize-controller may not act as {account}", "", ""),
		read(`(?:is forbidden: )?User "(system:serviceaccount:([^:"]+):([^"]+))" cannot (\w+) resource "([^"]+)" in API group "([^"]*)"(?: (?:in the namespace "([^"]+)"|at the cluster scope))?`,
			Forbidden, "ServiceAccount/$2/$3", "ServiceAccount/$2/$3 may not $4 $5 {scope:$7}", "",
			"kubectl auth can-i $4 $5{group:$6} --as=$1{in:$7}"),
		read(`User "([^"]+)" cannot (\w+) resource "([^"]+)" in API group "([^"]*)"(?: (?:in the namespace "([^"]+)"|at the cluster scope))?`,
			Forbidden, "", "user $1 may not $2 $3 {scope:$5}", "", "kubectl auth can-i $2 $3{group:$4} --as=$1{in:$5}"),
		read(applied+`.*error looking up service account ([^/\s]+)/([^:\s]+): .*not found`, Forbidden, "ServiceAccount/$2/$3",
			"$1 runs as ServiceAccount/$2/$3, which does not exist yet", "the ServiceAccount must be applied before the Pod", "kubectl -n $2 get serviceaccount $3"),
		read(applied+`.*is forbidden: (.*)`, Forbidden, "$1", "$1 is refused: $2", "", ""),
		read(applied+`.*(?:field is immutable|is immutable).*`, Immutable, "$1", "a field of $1 cannot be changed",
			"annotate it with kustomize.toolkit.fluxcd.io/force: enabled in git to have it re-created", ""),
		read(`(?s)(?:^|.*?\n)([A-Z]\w*/\S+) dry-run failed \((?:Conflict|FieldManagerConflict)\): (.*)`, Conflict, "$1", "$1: $2", "", ""),
		read(`(?s)(?:^|.*?\n)([A-Z]\w*/\S+) dry-run failed.*?: failed to create typed patch object \([^)]*\): ([^\n]*)`, Invalid, "$1",
			"$1 does not fit the schema that the cluster serves: $2", "", ""),
		read(`(?s)(?:^|.*?\n)([A-Z]\w*/\S+) dry-run failed \((?:Invalid|BadRequest)\): ([^\n]*)`, Invalid, "$1", "the API server refuses $1: $2", "", ""),
		read(`unable to read KubeConfig secret '([^'/]+)/([^']+)'`, Forbidden, "Secret/$1/$2", "the kubeconfig Secret/$1/$2 cannot be read", "", "kubectl -n $1 get secret $2"),
		read(`(?:connection refused|i/o timeout|TLS handshake timeout|http2: client connection lost|etcdserver: )`, APIUnavailable, "",
			"the API server did not answer kustomize-controller", "", ""),
	}
}

// sourceReadings are the texts about a source: getSource and reconcile in kustomize-controller's
// internal/controller/kustomization_controller.go, and fluxcd/pkg's http/fetch.
func sourceReadings() []reading {
	return []reading{
		read(`can't access '([^']+)', cross-namespace references have been blocked`, CrossNamespace, "$1",
			"$1 is in another namespace, and the controllers run with --no-cross-namespace-refs", "put the source into the tier's own namespace", ""),
		read(`can't access '([^']+)', (\S+) feature gate is disabled`, FeatureGateDisabled, "$1",
			"$1 needs the feature gate $2 of kustomize-controller", "", ""),
		read(`kustomization path not found: .*`, PathMissing, "", "the revision has no folder {path}", "correct spec.path, or the folder's name", ""),
		read(`(?:failed to (?:fetch|download) (?:archive|artifact)|unable to (?:fetch|download)|GET http\S+ giving up|dial tcp|computed digest|Get "http).*`, ArtifactDownload, "",
			"kustomize-controller cannot download the artifact from source-controller", "", "kubectl -n {flux} get deployment source-controller"),
	}
}

// reader holds the readings; compiling them costs more than using them.
type reader struct {
	source, build, apply []reading
	fluxNamespace        string
}

func newReader(fluxNamespace string) *reader {
	return &reader{source: sourceReadings(), build: buildReadings(), apply: applyReadings(), fluxNamespace: fluxNamespace}
}

// failure tells what a failed tier's own condition stands for. It looks at nothing but the
// Kustomization: what discovery and other objects know is added later.
func (r *reader) failure(k *kustomizev1.Kustomization, status flux.Status) Diagnosis {
	d := Diagnosis{FluxMessage: Mask(status.Message), Cause: NotUnderstood, Summary: "Flux reports " + status.Reason}
	message := buildFolder.ReplaceAllString(d.FluxMessage, "")
	if kinds := flux.MissingKinds(status.Message); len(kinds) > 0 && !unsetNamespace(kinds) {
		d.Cause, d.MissingKinds = KindMissing, kinds
		d.Object = kinds[0].Object
		d.Summary = missingSummary(kinds[0])
		return d
	}
	var readings []reading
	switch status.Reason {
	case meta.ArtifactFailedReason, "AccessDenied":
		readings = r.source
	case meta.BuildFailedReason:
		if missingKeySecret(k, message, &d) {
			return d
		}
		readings = r.build
		d.Cause, d.Summary = BuildFailed, "the build fails"
	case meta.PruneFailedReason:
		readings = r.apply
		d.Cause, d.Summary = PruneFailed, "an object that left git cannot be deleted"
	case meta.InvalidCELExpressionReason:
		d.Cause, d.Summary, d.Hint = ExpressionInvalid, "a CEL expression of the Kustomization does not compile", "correct readyExpr or healthCheckExprs in git"
		return d
	case meta.FeatureGateDisabledReason:
		d.Cause, d.Summary = FeatureGateDisabled, "needs a feature gate of kustomize-controller that is off"
		return d
	default:
		readings = slices.Concat(r.build, r.apply)
	}
	for _, reading := range readings {
		if reading.apply(&d, message, k, r.fluxNamespace) {
			return d
		}
	}
	if waiting := unhealthy(message); len(waiting) > 0 {
		d.Cause, d.Waiting, d.Object = StageTimeout, waiting, waiting[0].ID
		d.Summary = fmt.Sprintf("%s not ready within the minute that Flux gives definitions and classes", counted(waiting))
	}
	return d
}

// buildFolder is the temporary folder that a path in a build error begins with: MkdirTempAbs in
// kustomize-controller's internal/controller/tmpdir.go.
var buildFolder = regexp.MustCompile(`/[^\s'"]*/kustomization-\d+/`)

// apply fills d if the pattern matches.
func (r reading) apply(d *Diagnosis, message string, k *kustomizev1.Kustomization, fluxNamespace string) bool {
	match := r.pattern.FindStringSubmatchIndex(message)
	if match == nil {
		return false
	}
	fill := func(template string) string {
		if template == "" {
			return ""
		}
		text := string(r.pattern.ExpandString(nil, braces.ReplaceAllString(template, "$${$1}"), message, match))
		return firstLine(place(text, k, fluxNamespace))
	}
	d.Cause = r.cause
	d.Object, d.Summary, d.Hint, d.Command = fill(r.object), fill(r.summary), fill(r.hint), fill(r.command)
	return true
}

// braces finds $1 so that a digit or a letter may follow it.
var braces = regexp.MustCompile(`\$(\d)`)

// place fills the places of a template that the text itself does not know.
func place(text string, k *kustomizev1.Kustomization, fluxNamespace string) string {
	path := strings.TrimPrefix(k.Spec.Path, "./")
	if path == "" {
		path = "."
	}
	account := "the service account of its namespace"
	if k.Spec.ServiceAccountName != "" {
		account = "ServiceAccount/" + k.Namespace + "/" + k.Spec.ServiceAccountName
	}
	text = strings.NewReplacer("{ns}", k.Namespace, "{path}", path, "{account}", account, "{flux}", fluxNamespace,
		"{scope:}", "in the whole cluster", "{group:}", "", "{in:}", " -A",
		"get ConfigMap ", "get configmap ", "get Secret ", "get secret ").Replace(text)
	text = scopeOf.ReplaceAllString(text, "in namespace $1")
	text = groupOf.ReplaceAllString(text, ".$1")
	return namespaceOf.ReplaceAllString(text, " -n $1")
}

var (
	scopeOf     = regexp.MustCompile(`\{scope:([^}]+)\}`)
	groupOf     = regexp.MustCompile(`\{group:([^}]+)\}`)
	namespaceOf = regexp.MustCompile(`\{in:([^}]+)\}`)
)

// missingKeySecret recognises a decryption Secret that does not exist: ImportKeys in
// kustomize-controller's internal/decryptor/decryptor.go returns the API's error as it is.
func missingKeySecret(k *kustomizev1.Kustomization, message string, d *Diagnosis) bool {
	if k.Spec.Decryption == nil {
		return false
	}
	m := notFound.FindStringSubmatch(message)
	if m == nil {
		return false
	}
	namespace := k.Namespace
	if ref := k.Spec.Decryption.SecretRef; ref == nil || ref.Name != m[1] {
		namespace = "" // the controller's --sops-age-secret
	}
	d.Cause, d.Object = DecryptionKey, "Secret/"+namespace+"/"+m[1]
	d.Summary = fmt.Sprintf("the decryption key Secret/%s/%s does not exist", namespace, m[1])
	d.Command = fmt.Sprintf("kubectl -n %s get secret %s", namespace, m[1])
	if namespace == "" {
		d.Object = "Secret/" + m[1]
		d.Summary = fmt.Sprintf("the controller's own decryption key, Secret %s, does not exist", m[1])
		d.Command = "kubectl get secret -A --field-selector metadata.name=" + m[1]
	}
	return true
}

var notFound = regexp.MustCompile(`^(?:secrets|Secret) "([^"]+)" not found$`)

// unsetNamespace recognises an object without a namespace, which DryRunErr reports in the words
// that it also uses for a stale kind; only built-in kinds are certain not to be stale.
func unsetNamespace(kinds []flux.MissingKind) bool {
	return len(kinds) == 1 && kinds[0].Form == flux.Stale && builtIn(kinds[0].GVK.Kind)
}

// builtIn names the namespaced kinds that every API server has.
func builtIn(kind string) bool {
	switch kind {
	case "ConfigMap", "Secret", "Service", "ServiceAccount", "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob",
		"Role", "RoleBinding", "Ingress", "NetworkPolicy", "PersistentVolumeClaim", "Pod", "PodDisruptionBudget":
		return true
	}
	return false
}

func missingSummary(kind flux.MissingKind) string {
	switch {
	case kind.GVK.Kind == "":
		return fmt.Sprintf("%s is not served", kind.GVK.GroupVersion())
	case kind.GVK.Version == "":
		return fmt.Sprintf("kind %s is not known to the API server", kind.GVK.Kind)
	default:
		return fmt.Sprintf("kind %s of %s is not known to the API server", kind.GVK.Kind, kind.GVK.GroupVersion())
	}
}

// unhealthy reads the objects of "timeout waiting for: [Kind/ns/name status: 'InProgress', …]" and
// "failed early due to stalled resources: […]": WaitForSetWithContext in fluxcd/pkg's
// ssa/manager_wait.go.
func unhealthy(message string) []WaitingObject {
	var waiting []WaitingObject
	for _, m := range waitedFor.FindAllStringSubmatch(message, -1) {
		object := WaitingObject{ID: m[1], Status: m[2]}
		if m[3] != "" {
			object.ID, object.Status = m[3], "Unknown"
		}
		waiting = append(waiting, object)
	}
	return waiting
}

var waitedFor = regexp.MustCompile(`([A-Z]\w*/[^\s,\[\]]+) status: '(\w+)'|can't determine status for ([A-Z]\w*/[^\s,\[\]]+)`)

// counted names the first object and the number of the others.
func counted(waiting []WaitingObject) string {
	if len(waiting) == 1 {
		return fmt.Sprintf("%s is", waiting[0].ID)
	}
	return fmt.Sprintf("%s and %d more are", waiting[0].ID, len(waiting)-1)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(line)
}

package audit

import (
	"encoding/base64"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/tiers"
)

// ciphertexts finds what SOPS has encrypted in tiers without decryption and kustomize-controller does not
// refuse by itself, as it does Secrets: other kinds, and files that a generator has packed.
func (w *world) ciphertexts() []Finding {
	var out []Finding
	for i, t := range w.tiers {
		if t.Kustomization.Spec.Decryption != nil || t.Synthetic || w.injected {
			continue
		}
		var items []*item
		for _, it := range w.items[i] {
			if !it.Unreadable() && !decryptionDisabled(it) && (it.Encrypted() && it.gk != (schema.GroupKind{Kind: "Secret"}) || packsCiphertext(it)) {
				items = append(items, it)
			}
		}
		if len(items) == 0 {
			continue
		}
		f := w.at(encryptedWithoutKey, i, items)
		f.Severity = tiers.Warning
		f.Message = fmt.Sprintf("%s %s what SOPS has encrypted, and %s has no spec.decryption", words(f.Objects), verb(len(items), "holds", "hold"), t.Key)
		f.Cause = []string{"the ciphertext reaches the cluster as it stands; or the API server refuses it, where the schema of the kind knows no field sops, and with it the pass"}
		f.Fix = w.decryptionFix(t)
		out = append(out, f)
	}
	return out
}

// packsCiphertext reports whether a ConfigMap or Secret is made of a file that SOPS has encrypted: as one
// value, or a dotenv file's variables, sops_version among them.
func packsCiphertext(it *item) bool {
	if it.Encrypted() || it.gk.Group != "" || it.gk.Kind != "Secret" && it.gk.Kind != "ConfigMap" {
		return false
	}
	encrypted, sops := false, false
	for _, field := range []string{"data", "stringData"} {
		values, _, _ := unstructured.NestedStringMap(it.Object.Object, field)
		for key, v := range values {
			if it.gk.Kind == "Secret" && field == "data" {
				plain, _ := base64.StdEncoding.DecodeString(v)
				v = string(plain)
			}
			encrypted = encrypted || strings.Contains(v, "ENC[AES256_GCM,")
			sops = sops || strings.Contains(key, "sops") || strings.Contains(v, "sops")
		}
	}
	return encrypted && sops
}

// decryptionFix adds to a tier what another one of its namespace decrypts with, if there is one.
func (w *world) decryptionFix(t *tiers.Tier) string {
	for _, other := range w.tiers {
		if d := other.Kustomization.Spec.Decryption; d != nil && d.SecretRef != nil && other.Namespace == t.Namespace {
			return fmt.Sprintf("add decryption: {provider: %s, secretRef: {name: %s}} to %s, as %s has it", d.Provider, d.SecretRef.Name, t.Key, other.Key)
		}
	}
	return fmt.Sprintf("add decryption: {provider: sops, secretRef: {name: …}} to %s", t.Key)
}

package crds

import (
	"bytes"
	"encoding/base64"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/standup-sh/standup/pkg/render"
)

// sealed reports whether an object carries ciphertext: SOPS metadata of its own, or, in a Secret
// that a generator filled from encrypted files, values that are SOPS documents. Flux decrypts such
// files before it builds; here they are as git has them.
func sealed(o render.Object) bool {
	if o.Encrypted() {
		return true
	}
	gvk := o.GroupVersionKind()
	if gvk.Group != "" || (gvk.Kind != "Secret" && gvk.Kind != "ConfigMap") {
		return false
	}
	var values [][]byte
	for _, field := range []string{"data", "stringData"} {
		entries, _, _ := unstructured.NestedMap(o.Object, field)
		for _, entry := range entries {
			value, _ := entry.(string)
			values = append(values, []byte(value))
			if plain, err := base64.StdEncoding.DecodeString(value); err == nil {
				values = append(values, plain)
			}
		}
	}
	return slices.ContainsFunc(values, func(v []byte) bool { return bytes.Contains(v, []byte("ENC[AES256_GCM,")) })
}

package audit_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCiphertext lists what reaches the cluster encrypted: an object, a packed file, a file's variables.
func TestCiphertext(t *testing.T) {
	result, _ := unpack(t, filepath.Join("testdata", "encrypted-not-a-secret.txtar")).audit(t)
	want := []string{"ConfigMap/default/plain", "ConfigMap/default/dotenv", "Secret/default/packed"}
	if d := cmp.Diff(want, result.Findings[0].Objects); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

package flux

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPatches(t *testing.T) {
	token := Token(time.Date(2026, 11, 30, 13, 4, 5, 678900000, time.FixedZone("CET", 3600)))
	if want := "2026-11-30T12:04:05.6789Z"; token != want {
		t.Fatalf("token: got %s, want %s", token, want)
	}
	tests := map[string]struct {
		got  []byte
		want string
	}{
		"resume":  {ResumePatch(token), `{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":"2026-11-30T12:04:05.6789Z"}},"spec":{"suspend":null}}`},
		"nudge":   {NudgePatch(token), `{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":"2026-11-30T12:04:05.6789Z"}}}`},
		"suspend": {SuspendPatch(), `{"spec":{"suspend":true}}`},
		"reset":   {ResetPatch("t"), `{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":"t","reconcile.fluxcd.io/resetAt":"t"}}}`},
		"force":   {ForcePatch("t"), `{"metadata":{"annotations":{"reconcile.fluxcd.io/forceAt":"t","reconcile.fluxcd.io/requestedAt":"t"}}}`},
	}
	for name, test := range tests {
		if string(test.got) != test.want {
			t.Errorf("%s: got %s, want %s", name, test.got, test.want)
		}
	}
}

func TestSuspendedInGit(t *testing.T) {
	owned := func(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)}}
	}
	const suspend, other = `{"f:spec":{"f:suspend":{}}}`, `{"f:spec":{"f:path":{}}}`
	tests := map[string]struct {
		entries []metav1.ManagedFieldsEntry
		manager string
		inGit   bool
	}{
		"nobody":            {nil, "", false},
		"git":               {[]metav1.ManagedFieldsEntry{owned("kustomize-controller", "Apply", suspend)}, "kustomize-controller", true},
		"flux":              {[]metav1.ManagedFieldsEntry{owned("kustomize-controller", "Apply", other), owned("flux", "Update", suspend)}, "flux", false},
		"flux first, git":   {[]metav1.ManagedFieldsEntry{owned("flux", "Update", suspend), owned("kustomize-controller", "Apply", suspend)}, "kustomize-controller", true},
		"not readable":      {[]metav1.ManagedFieldsEntry{owned("kustomize-controller", "Apply", `{`)}, "", false},
		"status is no spec": {[]metav1.ManagedFieldsEntry{{Manager: "x", Subresource: "status", FieldsV1: &metav1.FieldsV1{Raw: []byte(suspend)}}}, "", false},
	}
	for name, test := range tests {
		k := kustomization("a")
		k.ManagedFields = test.entries
		manager, ok := SuspendManager(k)
		if manager != test.manager || ok != (test.manager != "") {
			t.Errorf("%s: manager: got %q %v, want %q", name, manager, ok, test.manager)
		}
		if got := SuspendedInGit(k, true); got != test.inGit {
			t.Errorf("%s: in git: got %v, want %v", name, got, test.inGit)
		}
		if SuspendedInGit(k, false) {
			t.Errorf("%s: in git though not suspended", name)
		}
	}
}

func TestAnswered(t *testing.T) {
	tests := []struct {
		requested, handled string
		want               bool
	}{{"", "", true}, {"", "a", true}, {"a", "", false}, {"b", "a", false}, {"a", "a", true}}
	for _, test := range tests {
		if got := Answered(test.requested, test.handled); got != test.want {
			t.Errorf("Answered(%q, %q): got %v, want %v", test.requested, test.handled, got, test.want)
		}
	}
}

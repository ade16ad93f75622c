package report

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/standup-sh/standup/pkg/audit"
)

func TestExcerptShowsNothingThatASecretHolds(t *testing.T) {
	for name, c := range map[string]struct{ document, want string }{
		"plain":            {"apiVersion: v1\nkind: Secret\nmetadata:\n  name: it\nstringData:\n  a: canary\n", "apiVersion: v1|kind: Secret|metadata:|  name: it"},
		"data first":       {"data:\n  name: canary\n  kind: canary\nkind: Secret\nmetadata:\n  name: it\n", "kind: Secret|metadata:|  name: it"},
		"encrypted":        {"apiVersion: v1\nkind: Secret\nmetadata: {name: it, namespace: there}\nstringData: {a: 'ENC[AES256_GCM,data:canary]'}\nsops: {mac: canary}\n", "apiVersion: v1|kind: Secret|metadata: {name: it, namespace: there}"},
		"one line":         {"{apiVersion: v1, kind: Secret, stringData: {a: canary}}\n", ""},
		"JSON":             {"{\n  \"kind\": \"Secret\",\n  \"data\": {\"a\": \"canary\"}\n}\n", ""},
		"generator":        {"resources:\n- a.yaml\nsecretGenerator:\n- name: it\n  literals:\n  - a=canary\n", ""},
		"another document": {"kind: ConfigMap\nmetadata:\n  name: it\n---\nkind: Secret\nstringData: {a: canary}\n", "kind: ConfigMap|metadata:|  name: it"},
	} {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{"f.yaml": {Data: []byte(c.document)}}
			var got []string
			for _, line := range excerpt(files, audit.Location{File: "f.yaml", Line: 1}, 9) {
				got = append(got, line.text)
			}
			if text := strings.Join(got, "|"); text != c.want {
				t.Errorf("got %q, want %q", text, c.want)
			}
		})
	}
}

package e2e

import (
	"io/fs"
	"os"
	"strings"
	"testing"
)

// secretive is a repository in which every tier has to do with Secrets: "secrets" holds plain ones,
// "sealed" an encrypted one without a key, "policy" a trigger and its kind built with a variable from
// a Secret that is only on the cluster, "web" an object that the API server refuses and quotes, and
// "release" a release with values from a Secret, "guess" one that may bring a kind which nobody is known to bring,
// beside an object that the API server refuses. That kind ends in Class, so that Flux comes to it first and
// always fails for it: of the objects of one stage it names any that fails.
func secretive() map[string]string {
	post := "  postBuild: {substituteFrom: [{kind: Secret, name: live}]}\n"
	return map[string]string{
		"clusters/test/secrets.yaml": tierFile("secrets", ""),
		"clusters/test/sealed.yaml":  tierFile("sealed", "", "secrets"),
		"clusters/test/policy.yaml":  tierFile("policy", post, "secrets"),
		"clusters/test/web.yaml":     tierFile("web", post, "secrets"),
		"clusters/test/release.yaml": tierFile("release", post, "secrets"),
		"clusters/test/guess.yaml":   tierFile("guess", post, "secrets"),
		"guess/guess.yaml": releaseFile("guess", "kube-public", "nothing", "{token: \"${TOKEN}\"}") + "---\napiVersion: mystery.example/v1\nkind: RiddleClass\nmetadata: {name: a, namespace: default}\nspec: {token: \"${TOKEN}\"}\n---\n" +
			"apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: default, labels: {a: \"${HOST}\"}}\nspec: {ports: [{port: 80}]}\n",
		"secrets/crd.yaml": crdFile("templates.gatekeeper.sh", "v1", "ConstraintTemplate", "constrainttemplates", "Cluster"),
		"secrets/plain.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: plain, namespace: default}\nstringData: {a: canary-string}\n---\n" +
			"apiVersion: v1\nkind: Secret\nmetadata: {name: values, namespace: default}\nstringData: {values.yaml: 'password: canary-values'}\n",
		"sealed/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: sealed, namespace: default}\nstringData: {a: 'ENC[AES256_GCM,data:canary-sealed,type:str]'}\nsops: {version: 3.9.0, mac: canary-mac}\n",
		"policy/policy.yaml": "apiVersion: templates.gatekeeper.sh/v1\nkind: ConstraintTemplate\nmetadata: {name: musthaveowner, annotations: {token: \"${TOKEN}\"}}\nspec: {crd: {spec: {names: {kind: MustHaveOwner}}}}\n---\n" +
			"apiVersion: constraints.gatekeeper.sh/v1beta1\nkind: MustHaveOwner\nmetadata: {name: everywhere}\nspec: {token: \"${TOKEN}\"}\n",
		"web/web.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: default}\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: \"${HOST}\"}}, spec: {containers: [{name: a, image: a}]}}}\n",
		"release/release.yaml": releaseFile("web", "default", "nothing", "{token: \"${TOKEN}\"}") +
			"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: uses, namespace: default}\ndata: {token: \"${TOKEN}\"}\n",
	}
}

// TestE2ECrdsCommandKeepsSecrets runs every command that talks to the cluster, in every format and
// with all logs on: no value of a Secret is on a stream or in a file.
func TestE2ECrdsCommandKeepsSecrets(t *testing.T) {
	e := newCrdsEnv(t)
	_, err := buildOnce()
	must(t, err)
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	must(t, e.Apply(t.Context(), "apiVersion: v1\nkind: Secret\nmetadata: {name: live, namespace: flux-system}\nstringData: {TOKEN: canary-live, HOST: 'Canary Host!'}\n"))
	e.push(secretive())
	e.waitReady("secrets")
	e.waitStuck("policy", "MustHaveOwner")

	quiet := func(command string, formats ...string) {
		for _, format := range formats {
			args := append(strings.Fields(command), "--path", e.path, "-o", format, "--log-level", "debug", "--log-encoding", "json")
			o := standup(t, e.Cluster, e.repo.Dir, args...)
			if command == "up --tier-timeout 5s --timeout 40s" && !strings.Contains(o.stdout, "freeing it failed: Service/default/web: dry run: ") {
				t.Errorf("standup %s -o %s did not try to apply all of a tier", command, format)
			}
			for line := range strings.Lines(o.stdout + o.stderr) {
				if strings.Contains(strings.ToLower(line), "canary") {
					t.Errorf("standup %s -o %s shows a value: %s", command, format, line)
				}
			}
		}
	}
	quiet("crds --list", "text", "json")
	quiet("crds --dry-run", "text", "json")
	quiet("status", "text", "json", "yaml")
	quiet("resume --dry-run", "text", "json")
	quiet("up --dry-run", "text", "json")
	quiet("wait --timeout 2s", "text", "json")
	quiet("crds --timeout 2s --charts", "text", "json")
	e.runStandins()
	quiet("crds --timeout 20s", "text", "json")
	quiet("up --tier-timeout 5s --timeout 40s", "text", "json")
	quiet("suspend --only web", "text", "json")
	e.waitReady("policy")
	must(t, fs.WalkDir(os.DirFS(cache), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(os.DirFS(cache), name)
		if strings.Contains(strings.ToLower(string(data)), "canary") {
			t.Errorf("%s holds a value", name)
		}
		return err
	}))
}

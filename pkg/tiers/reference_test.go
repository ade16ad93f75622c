package tiers

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	securejoin "github.com/cyphar/filepath-securejoin"
	generator "github.com/fluxcd/pkg/kustomize"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/pkg/repo"
)

// reference builds a tier with the controller's own library, on a copy of the artifact on disk,
// step by step as kustomize-controller's reconcile does.
func reference(ctx context.Context, root string, raw *unstructured.Unstructured, vars map[string]string) (string, error) {
	ks := raw.DeepCopy()
	if len(vars) > 0 {
		if err := unstructured.SetNestedStringMap(ks.Object, vars, "spec", "postBuild", "substitute"); err != nil {
			return "", err
		}
	}
	p, _, _ := unstructured.NestedString(ks.Object, "spec", "path")
	dir, err := securejoin.SecureJoin(root, p)
	if err != nil {
		return "", err
	}
	if _, err := generator.NewGenerator(root, *ks).WriteFile(dir, generator.WithSaveOriginalKustomization()); err != nil {
		return "", err
	}
	defer restore(dir)
	m, err := generator.SecureBuild(root, dir, false)
	if err != nil {
		return "", err
	}
	_, substitutes, _ := unstructured.NestedMap(ks.Object, "spec", "postBuild")
	strategy, _, _ := unstructured.NestedString(ks.Object, "spec", "postBuild", "substituteStrategy")
	for _, res := range m.Resources() {
		if !substitutes {
			break
		}
		out, err := generator.SubstituteVariables(ctx, nil, *ks, res, generator.SubstituteWithDryRun(true),
			generator.SubstituteWithStrict(true), generator.SubstituteWithAlways(strategy == "Always"))
		if err != nil {
			return "", err
		}
		if out != nil {
			if _, err := m.Replace(res); err != nil {
				return "", err
			}
		}
	}
	text, err := m.AsYaml()
	return string(text), err
}

// restore undoes what the generator wrote.
func restore(dir string) {
	entries, _ := os.ReadDir(dir)
	made := true
	for _, e := range entries {
		if orig, ok := strings.CutSuffix(e.Name(), ".original"); ok {
			_ = os.Rename(filepath.Join(dir, e.Name()), filepath.Join(dir, orig))
			made = false
		}
	}
	if made {
		_ = os.Remove(filepath.Join(dir, "kustomization.yaml"))
	}
}

// export writes an artifact to disk the way source-controller packs it: regular files only.
func export(t testing.TB, src *render.Source) string {
	t.Helper()
	root := t.TempDir()
	err := fs.WalkDir(src.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return os.MkdirAll(filepath.Join(root, name), 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		data, err := fs.ReadFile(src.FS(), name)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(root, name), data, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// ours renders a tier's objects as one YAML stream, common metadata left out.
func ours(t testing.TB, l *loader, s *state) string {
	t.Helper()
	raw := s.raw.DeepCopy()
	unstructured.RemoveNestedField(raw.Object, "spec", "commonMetadata")
	res, err := s.src.Build(t.Context(), raw, render.Options{Lookup: l.lookup, Vars: l.opts.Vars})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for i, o := range res.Objects {
		if i > 0 {
			b.WriteString("---\n")
		}
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(text)
	}
	return b.String()
}

// normal re-reads a stream, so that only content is compared: kustomize's own kinds are dropped as the controller does.
func normal(t testing.TB, stream string) string {
	t.Helper()
	var out []string
	for _, doc := range strings.Split("\n"+stream, "\n---\n") {
		var v map[string]any
		if err := yaml.Unmarshal([]byte(doc), &v); err != nil {
			t.Fatal(err)
		}
		api, _ := v["apiVersion"].(string)
		if v == nil || strings.HasPrefix(api, "kustomize.config.k8s.io/") {
			continue
		}
		text, err := yaml.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(text))
	}
	return strings.Join(out, "---\n")
}

// compareWithReference checks every tier that builds without fault, and that the reference refuses
// those that do not. mayFail says that the entry may be one that cannot be loaded: there is nothing to
// compare then.
func compareWithReference(t *testing.T, tree *repo.Tree, opts Options, mayFail bool) (compared int) {
	t.Helper()
	opts.Objects = true
	l, err := newLoader(tree, opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.start(t.Context()); err != nil {
		if !mayFail {
			t.Fatal(err)
		}
		return 0
	}
	if err := l.discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	roots := map[*render.Source]string{}
	for _, s := range l.sorted() {
		if s.src == nil || s.err != nil || len(s.res.Missing) > 0 || len(s.res.Linked) > 0 {
			continue
		}
		if slices.ContainsFunc(s.res.Faults, func(err error) bool { return errors.Is(err, render.ErrAliases) }) {
			continue // the reference would fill the memory
		}
		if roots[s.src] == "" {
			roots[s.src] = export(t, s.src)
		}
		vars := s.variables(l)
		want, err := reference(t.Context(), roots[s.src], s.raw, vars)
		faulty := len(s.res.Faults) > 0 || len(s.res.Unknown) > 0
		if err != nil {
			if !faulty {
				t.Errorf("%s: the controller refuses what we build: %v", keyString(s.tier.Key), err)
			}
			continue
		}
		if faulty {
			t.Errorf("%s: the controller builds what we refuse: %v %v", keyString(s.tier.Key), s.res.Faults, s.res.Unknown)
			continue
		}
		compared++
		if d := cmp.Diff(normal(t, want), normal(t, ours(t, l, s))); d != "" {
			t.Errorf("%s: differs from the controller's build (-controller +ours):\n%.3000s", keyString(s.tier.Key), d)
		}
	}
	return compared
}

// variables are the inputs of a tier's substitution, merged.
func (s *state) variables(l *loader) map[string]string {
	pb := s.tier.Kustomization.Spec.PostBuild
	if pb == nil {
		return nil
	}
	out := map[string]string{}
	for _, ref := range pb.SubstituteFrom {
		data, _ := l.lookup(ref.Kind, s.tier.Namespace, ref.Name)
		for k, v := range data {
			out[k] = v
		}
	}
	for k, v := range pb.Substitute {
		out[k] = v
	}
	return out
}

func TestBuildsEqualTheControllersBuild(t *testing.T) {
	total := 0
	for _, f := range fixtures(t) {
		t.Run(f.name, func(t *testing.T) {
			tree, err := repo.Open(f.dir, "")
			if err != nil {
				t.Fatal(err)
			}
			f.opts.Vars = nil
			total += compareWithReference(t, tree, f.opts, f.fails(t))
		})
	}
	if total == 0 {
		t.Error("nothing was compared")
	}
}

// TestRepositoriesEqualTheControllersBuild does the same for repositories outside the project:
// STANDUP_REPOS lists folder:path pairs, separated by spaces.
func TestRepositoriesEqualTheControllersBuild(t *testing.T) {
	list := os.Getenv("STANDUP_REPOS")
	if list == "" {
		t.Skip("STANDUP_REPOS is not set")
	}
	for _, item := range strings.Fields(list) {
		dir, path, _ := strings.Cut(item, ":")
		t.Run(item, func(t *testing.T) {
			tree, err := repo.Open(dir, "HEAD")
			if err != nil {
				t.Fatal(err)
			}
			n := compareWithReference(t, tree, Options{Path: path}, false)
			t.Logf("%d tiers compared", n)
		})
	}
}

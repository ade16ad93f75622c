package render

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/standup-sh/standup/pkg/repo"
)

func source(t *testing.T, dir, ignore string, files map[string]string) *Source {
	t.Helper()
	data := map[string][]byte{}
	for name, text := range files {
		data[name] = []byte(text)
	}
	s, err := NewSource(repo.FromFiles(data), dir, ignore)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func configMap(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n"
}

func build(t *testing.T, s *Source, spec map[string]any) *Result {
	t.Helper()
	res, err := s.Build(t.Context(), &unstructured.Unstructured{Object: map[string]any{"spec": spec}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func ids(objects []Object) []string {
	var out []string
	for _, o := range objects {
		out = append(out, o.ID()+" "+o.File)
	}
	return out
}

func TestArtifactLeavesOutWhatSourceControllerDoes(t *testing.T) {
	files := map[string]string{
		"a.yaml": "x", ".github/ci.yaml": "x", "logo.png": "x", "d/.sops.yaml": "x", "d/e.yaml": "x", "appveyor.yml": "x", ".gitignore": "x",
	}
	with := func(name, text string) map[string]string {
		out := map[string]string{name: text}
		for k, v := range files {
			out[k] = v
		}
		return out
	}
	for _, c := range []struct {
		name, ignore string
		files        map[string]string
		want         []string
	}{
		{"its own rules", "", files, []string{"a.yaml", "d/e.yaml"}},
		{"spec.ignore instead", "d/\n", files, []string{".github/ci.yaml", "a.yaml", "appveyor.yml", "logo.png"}},
		{"a .sourceignore file", "", with("d/.sourceignore", "e.yaml\n"), []string{".github/ci.yaml", "a.yaml", "appveyor.yml", "d/.sops.yaml", "d/.sourceignore", "logo.png"}},
		{"all but one folder", "/*\n!/d\n", files, []string{"d/.sops.yaml", "d/e.yaml"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := source(t, ".", c.ignore, c.files)
			var got []string
			err := fs.WalkDir(s.FS(), ".", func(name string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					got = append(got, name)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestResolveClampsToTheRoot(t *testing.T) {
	s := source(t, "k8s", "", map[string]string{"k8s/a/b.yaml": "x"})
	for in, want := range map[string]string{"./a": "k8s/a", "a/": "k8s/a", "../../a": "k8s/a", "": "k8s", "/": "k8s", "a/../..": "k8s"} {
		if got := s.Resolve(in); got != want {
			t.Errorf("%q is %s, want %s", in, got, want)
		}
	}
}

func TestBuildCannotReadAboveTheRoot(t *testing.T) {
	s := source(t, "k8s", "", map[string]string{
		"k8s/a/kustomization.yaml": "resources: [../../outside.yaml, in.yaml]\n", "k8s/a/in.yaml": configMap("in"), "outside.yaml": configMap("outside"),
	})
	res := build(t, s, map[string]any{"path": "a"})
	if d := cmp.Diff([]string{"ConfigMap/in k8s/a/in.yaml"}, ids(res.Objects)); d != "" {
		t.Error(d)
	}
	var re *ReferenceError
	if len(res.Faults) != 1 || !errors.As(res.Faults[0], &re) || re.Ref != "../../outside.yaml" || re.Line != 1 {
		t.Errorf("faults: %v", res.Faults)
	}
}

func TestBuildNamesTheFileAndLineOfEveryObject(t *testing.T) {
	s := source(t, ".", "", map[string]string{
		"base/kustomization.yaml":    "resources: [two.yaml]\n",
		"base/two.yaml":              "# a comment\n---\n" + configMap("one") + "---\n" + configMap("two"),
		"overlay/kustomization.yaml": "resources: [../base]\nnamePrefix: pre-\nconfigMapGenerator:\n- name: made\n  literals: [a=b]\n  options: {disableNameSuffixHash: true}\n",
	})
	res := build(t, s, map[string]any{"path": "overlay"})
	want := []string{"ConfigMap/pre-one base/two.yaml", "ConfigMap/pre-two base/two.yaml", "ConfigMap/pre-made overlay/kustomization.yaml"}
	if d := cmp.Diff(want, ids(res.Objects)); d != "" {
		t.Error(d)
	}
	if one, two := s.Line(res.Objects[0]), s.Line(res.Objects[1]); one != 3 || two != 8 {
		t.Errorf("lines %d and %d, want 3 and 8", one, two)
	}
	for _, o := range res.Objects {
		if _, ok := o.GetAnnotations()[originKey]; ok {
			t.Errorf("%s keeps kustomize's origin annotation", o.ID())
		}
	}
}

func TestBuildBuildsOnlyWhatIsWanted(t *testing.T) {
	s := source(t, ".", "", map[string]string{
		"plain/a.yaml":                   configMap("a") + "---\n" + configMap("b"),
		"transformed/kustomization.yaml": "namespace: x\nresources: [a.yaml]\n", "transformed/a.yaml": configMap("a") + "---\n" + configMap("b"),
		"broken/kustomization.yaml": "namespace: x\nresources: [a.yaml]\n", "broken/a.yaml": configMap("c") + "---\na: [\n",
	})
	for _, c := range []struct {
		path, name string
		want       []string
		faults     int
	}{
		{"plain", "a", []string{"ConfigMap/a plain/a.yaml"}, 0},
		{"plain", "c", nil, 0},
		{"transformed", "a", []string{"ConfigMap/x/a transformed/a.yaml", "ConfigMap/x/b transformed/a.yaml"}, 0},
		{"transformed", "c", nil, 0},
		{"broken", "a", nil, 1},
	} {
		res, err := s.Build(t.Context(), &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"path": c.path}}},
			Options{Want: func(id Identity) bool { return id.Name == c.name }})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, ids(res.Objects)); d != "" {
			t.Errorf("%s of %s: %s", c.name, c.path, d)
		}
		if len(res.Faults) != c.faults {
			t.Errorf("%s of %s: faults %v", c.name, c.path, res.Faults)
		}
	}
}

func TestBuildErrors(t *testing.T) {
	s := source(t, ".", "", map[string]string{"a/cm.yaml": configMap("a")})
	_, err := s.Build(t.Context(), &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"path": "b"}}}, Options{})
	var pe *PathError
	if !errors.As(err, &pe) || pe.Dir != "b" {
		t.Errorf("a path that does not exist: %v", err)
	}
	res := build(t, source(t, ".", "", map[string]string{
		"a/kustomization.yaml": "resources: [cm.yaml]\npatches:\n- target: {kind: Absent}\n  patch: not a patch\n", "a/cm.yaml": configMap("a"),
	}), map[string]any{"path": "a"})
	if len(res.Faults) != 1 || !res.Raw || len(res.Objects) != 1 || strings.Contains(res.Faults[0].Error(), mount) || strings.Contains(res.Faults[0].Error(), "\n") {
		t.Errorf("a build that kustomize refuses: %v, raw %v, %d objects", res.Faults, res.Raw, len(res.Objects))
	}
}

// A composed tree, as an ArtifactGenerator makes it, has its files under other names than they are written.
func TestBuildOfComposedTree(t *testing.T) {
	tree := repo.FromFiles(map[string][]byte{
		"src/kustomization.yaml": []byte("resources: [a.yaml, broken.yaml, gone.yaml]\n"),
		"src/a.yaml":             []byte("# a\n" + configMap("a")),
		"src/broken.yaml":        []byte("a: b: c\n"),
		"app/a.yaml":             []byte("# another one\n\n\n" + configMap("a")),
	})
	files := map[string]repo.File{}
	for from, to := range map[string]string{"src/kustomization.yaml": "app/kustomization.yaml", "src/a.yaml": "app/a.yaml", "src/broken.yaml": "app/broken.yaml"} {
		files[to] = repo.File{Tree: tree, Name: from}
	}
	s, err := NewSource(repo.Compose(tree, files), ".", "")
	if err != nil {
		t.Fatal(err)
	}
	res := build(t, s, map[string]any{"path": "app"})
	var faults []string
	for _, f := range res.Faults {
		faults = append(faults, f.Error())
		if e, ok := errors.AsType[*ReferenceError](f); ok && e.Line != 1 {
			t.Errorf("%v: on line %d, want 1", f, e.Line)
		}
	}
	want := []string{
		"reading app/kustomization.yaml: gone.yaml does not exist",
		"reading app/broken.yaml:1: mapping values are not allowed in this context",
	}
	if diff := cmp.Diff(want, faults); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ConfigMap/a src/a.yaml"}, ids(res.Objects)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if len(res.Objects) == 1 {
		if line := s.Line(res.Objects[0]); line != 2 {
			t.Errorf("line %d, want 2", line)
		}
	}
}

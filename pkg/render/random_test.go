package render_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/standup-sh/standup/pkg/render"
)

// FuzzDirectIsKustomize builds folders that combine the features of kustomize at random, with
// kustomize and without. A seed is a folder, so that go test builds the first of them.
func FuzzDirectIsKustomize(f *testing.F) {
	ar, err := txtar.ParseFile("testdata/random.txtar")
	if err != nil {
		f.Fatal(err)
	}
	pieces := map[string][]string{}
	for _, p := range ar.Files {
		pieces[p.Name] = append(pieces[p.Name], string(p.Data))
	}
	for seed := range uint64(60) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		w := &world{Rand: rand.New(rand.NewPCG(seed, 0)), pieces: pieces, files: map[string]string{}, ids: map[string]int{}}
		w.folder("top", 0, false)
		want := build(t, w.files, "top", render.Options{Kustomize: true})
		got := build(t, w.files, "top", render.Options{})
		for i := range min(len(want), len(got)) {
			if file, ok := want[i].(string); ok && strings.HasSuffix(file, "/kustomization.yaml") {
				// A patch that writes all annotations anew takes kustomize's note of the file with it.
				got[i] = file
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-kustomize +direct):\n%s\n%s", d, w)
		}
	})
}

// world makes files at random.
type world struct {
	*rand.Rand
	pieces map[string][]string
	files  map[string]string
	count  int
	ids    map[string]int
}

func (w *world) String() string {
	var b strings.Builder
	for name, text := range w.files {
		fmt.Fprintf(&b, "-- %s --\n%s", name, text)
	}
	return b.String()
}

func (w *world) one(of ...string) string { return of[w.IntN(len(of))] }

func (w *world) in(n int) bool { return w.IntN(n) == 0 }

var names = []string{"web", "cfg", "db", "robot", "one", "two", "api", "app", "job", "run", "key", "log"} //nolint:gochecknoglobals // a table

// order is that of the fields above, and how many folders in a hundred have them.
var order = []struct { //nolint:gochecknoglobals // a table
	field  string
	chance int
}{
	{"namespace", 35}, {"labels", 20}, {"commonAnnotations", 15}, {"images", 10}, {"replicas", 2}, {"generatorOptions", 10}, {"configMapGenerator", 25},
	{"secretGenerator", 10}, {"patches", 40}, {"replacements", 7}, {"buildMetadata", 3}, {"configurations", 4}, {"rare", 2},
}

// fill writes a value for each word after %. An ID is a name that few other objects of the kind have.
func (w *world) fill(text string) string {
	kind, _, _ := strings.Cut(text, "metadata")
	if strings.HasPrefix(kind, "configMapGen") || strings.Contains(kind, "List\n") {
		kind = "apiVersion: v1\nkind: ConfigMap\n"
	}
	for strings.Contains(text, "%ID") {
		w.ids[kind]++
		name := names[w.ids[kind]%len(names)]
		if again := w.ids[kind] / len(names); again > 0 {
			name += strconv.Itoa(again)
		}
		if w.in(40) {
			name = w.one(names...)
		}
		text = strings.Replace(text, "%ID", name, 1)
	}
	for _, v := range []struct {
		key string
		of  []string
	}{
		{"%META", []string{"", "", ", namespace: %NS", ", labels: {app: %NAME}", ", annotations: null", ", labels: null", ", annotations: {a: \"1\"}",
			", namespace: %NS, labels: {app: %NAME, b: c}", ", annotations: {config.kubernetes.io/local-config: \"true\"}", ", annotations: {}", ", annotations: {n: 1}", ", labels: {n: yes}",
			", annotations: {internal.config.kubernetes.io/needsHashSuffix: enabled}", ", annotations: {kustomize.config.k8s.io/needs-hash: \"true\"}", ", annotations: {config.kubernetes.io/index: \"3\"}", ", namespace: \"\"", ", namespace: null"}},
		{"%KIND", []string{"Deployment", "ConfigMap", "Service", "HelmRelease", "Secret", "ServiceAccount", ".*", "Namespace"}},
		{"%NAME", names},
		{"%BEH", []string{"create", "create", "create", "merge", "replace"}},
		{"%NS", []string{"shop", "default", "one", "two"}},
		{"%VAL", []string{"1", "\"1\"", "yes", "null", "text", "1.0", "{a: b}", "[x]", "cfg", "~", "0x1F", "\"\"", "2024-01-01"}},
	} {
		for strings.Contains(text, v.key) {
			text = strings.Replace(text, v.key, v.of[w.IntN(len(v.of))], 1)
		}
	}
	return text
}

// folder makes a folder with a kustomization file and all that it refers to.
func (w *world) folder(dir string, depth int, component bool) {
	var text, resources, components strings.Builder
	if component {
		text.WriteString("apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n")
	} else if w.in(3) {
		text.WriteString("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n")
	}
	add := func(to *strings.Builder, as string) string {
		w.count++
		name := as + strconv.Itoa(w.count)
		fmt.Fprintf(to, "- ../%s\n", name)
		return name
	}
	for range w.IntN(3) + 1 - depth/2 {
		if depth < 3 && w.in(2) {
			w.folder(add(&resources, "f"), depth+1, false)
			continue
		}
		w.count++
		name := fmt.Sprintf("o%d.yaml", w.count)
		fmt.Fprintf(&resources, "- %s\n", name)
		var docs []string
		for range 1 + w.IntN(4) {
			docs = append(docs, w.fill(w.one(w.pieces["object"]...)))
		}
		body := strings.Join(docs, "---\n")
		switch w.IntN(16) {
		case 0:
			body = strings.ReplaceAll(body, "\n", "\r\n")
		case 1:
			body = "\ufeff" + body
		case 2:
			body = "---\n" + body + "---\n"
		}
		w.files[dir+"/"+name] = body
	}
	for depth < 3 && w.in(4) {
		w.folder(add(&components, "c"), depth+1, true)
	}
	if resources.Len() == 0 {
		text.WriteString("metadata: {name: k}\n")
	}
	if resources.Len() > 0 {
		text.WriteString("resources:\n" + resources.String())
	}
	if components.Len() > 0 {
		text.WriteString("components:\n" + components.String())
	}
	for _, o := range order {
		if w.IntN(100) >= o.chance {
			continue
		}
		part := w.fill(w.one(w.pieces[o.field]...))
		text.WriteString(part)
		if o.field == "patches" && w.in(2) {
			if more := w.fill(w.one(w.pieces["patches"]...)); strings.HasPrefix(more, "patches:") == strings.HasPrefix(part, "patches:") {
				text.WriteString(more[strings.Index(more, "\n")+1:])
			}
		}
	}
	w.files[dir+"/conf.yaml"] = "nameReference:\n- kind: ConfigMap\n  fieldSpecs: [{kind: A, path: spec/secretName}, {kind: HelmRelease, path: spec/valuesFrom/name}]\n"
	w.files[dir+"/kustomization.yaml"] = text.String()
}

package audit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/standup-sh/standup/pkg/audit"
	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/pkg/repo"
	"github.com/standup-sh/standup/pkg/tiers"
)

// fixture is a small repository in testdata. The comment at its top says what it shows, how it is
// read and what is to be found: "finds: severity rule tier object blocks n", all of it and no more. "ready: n of n, n
// unsure" says how many tiers come up, and of how many of the others git alone does not tell.
//
// A near miss looks almost like a fault and is none: "near miss of: rule" names the rule that must say
// nothing of it, and "like: fixture" the fixture in which that rule finds something. It starts from the
// files of that one and shows only the difference: files that replace or add, "without: file", and
// "edit: file: old => new" for what occurs once in a file, with \n for the end of a line.
type fixture struct {
	name, dir, path        string
	like                   string
	nearMissOf             []string
	sources                map[string]string
	ready                  string
	finds, accepts, unused []string
	// assumes is what is taken to be there before Flux, checked where a fixture says any.
	assumes []string
}

func fixtures(t *testing.T) []fixture {
	t.Helper()
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	var out []fixture
	for _, a := range archives {
		out = append(out, unpack(t, a))
	}
	return out
}

func unpack(t *testing.T, archive string) fixture {
	t.Helper()
	f := fixture{name: strings.TrimSuffix(filepath.Base(archive), ".txtar"), dir: t.TempDir(), sources: map[string]string{}}
	for file, content := range f.read(t, archive) {
		file, target, link := strings.Cut(file, " -> ")
		name := filepath.Join(f.dir, file)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if link {
			if err := os.Symlink(target, name); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(f.finds)
	return f
}

// read takes in what an archive says, after that of the archive it is like, and returns its files.
func (f *fixture) read(t *testing.T, archive string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	ar := txtar.Parse(data)
	files := map[string]string{}
	if base, ok := headers(ar)["like"]; ok {
		origin := fixture{sources: f.sources}
		files = origin.read(t, filepath.Join(filepath.Dir(archive), base[0]+".txtar"))
		f.like, f.path = base[0], origin.path
	}
	for _, file := range ar.Files {
		files[file.Name] = string(file.Data)
	}
	for key, values := range headers(ar) {
		for _, value := range values {
			switch key {
			case "path":
				f.path = value
			case "near miss of":
				f.nearMissOf = append(f.nearMissOf, value)
			case "assumes":
				f.assumes = append(f.assumes, value)
			case "source":
				k, v, _ := strings.Cut(value, "=")
				f.sources[k] = v
			case "ready":
				f.ready = value
			case "finds":
				f.finds = append(f.finds, value)
			case "accepts":
				f.accepts = append(f.accepts, value)
			case "unused":
				f.unused = append(f.unused, value)
			case "without":
				if _, ok := files[value]; !ok {
					t.Fatalf("%s: there is no %s to leave out", archive, value)
				}
				delete(files, value)
			case "edit":
				alter(t, archive, files, value)
			}
		}
	}
	return files
}

// headers are the lines "key: value" of an archive's comment, those of a key in their order.
func headers(ar *txtar.Archive) map[string][]string {
	out := map[string][]string{}
	for line := range strings.SplitSeq(string(ar.Comment), "\n") {
		if key, value, ok := strings.Cut(line, ": "); ok {
			out[key] = append(out[key], value)
		}
	}
	return out
}

// alter changes one place of one file: "file: old => new".
func alter(t *testing.T, archive string, files map[string]string, edit string) {
	t.Helper()
	file, rest, _ := strings.Cut(edit, ": ")
	before, after, ok := strings.Cut(rest, " =>")
	before, after = strings.ReplaceAll(before, `\n`, "\n"), strings.ReplaceAll(strings.TrimPrefix(after, " "), `\n`, "\n")
	if n := strings.Count(files[file], before); !ok || n != 1 {
		t.Fatalf("%s: what is to be edited is %d times in %s: %q", archive, n, file, before)
	}
	files[file] = strings.Replace(files[file], before, after, 1)
}

// audit runs the fixture the way the command does.
func (f fixture) audit(t *testing.T) (*audit.Result, *repo.Tree) {
	t.Helper()
	return f.auditOnly(t, audit.Options{})
}

// auditOnly is audit with the severity and the rules of some options.
func (f fixture) auditOnly(t *testing.T, only audit.Options) (*audit.Result, *repo.Tree) {
	t.Helper()
	tree, err := repo.Open(f.dir, "")
	if err != nil {
		t.Fatal(err)
	}
	catalogue, err := crds.DefaultCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	config, err := audit.LoadConfig(tree.FS(), catalogue)
	if err != nil {
		t.Fatal(err)
	}
	g, err := tiers.Load(t.Context(), tree, tiers.Options{Path: f.path, Objects: true, Sources: f.sources})
	if err != nil {
		t.Fatal(err)
	}
	src, err := render.NewSource(tree, ".", "")
	if err != nil {
		t.Fatal(err)
	}
	return audit.Run(g, audit.Options{
		Lines: src.Line, Steps: audit.FindSteps(tree.FS(), catalogue), Config: config, Providers: crds.Providers(g, catalogue, nil, nil), Now: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC),
		Severity: only.Severity, Rules: only.Rules,
	}), tree
}

// short writes a finding as fixtures do.
func short(f audit.Finding) string {
	object := f.Object
	if object == "" {
		object = "-"
	}
	return fmt.Sprintf("%s %s %s %s blocks %d", f.Severity, f.Rule, f.Tier, object, len(f.Blocked))
}

func shorts(list []audit.Finding) []string {
	var out []string
	for _, f := range list {
		out = append(out, short(f))
	}
	slices.Sort(out)
	return out
}

func TestFixtures(t *testing.T) {
	for _, f := range fixtures(t) {
		t.Run(f.name, func(t *testing.T) {
			result, _ := f.audit(t)
			if d := cmp.Diff(f.finds, shorts(result.Findings)); d != "" {
				t.Errorf("findings (-want +got):\n%s\n%s", d, lines(result.Findings))
			}
			for _, finding := range result.Findings {
				if err := audit.CheckRules([]string{finding.Rule}); err != nil {
					t.Error(err)
				}
				if finding.At.File == "" || finding.At.Line == 0 && !slices.Contains([]string{"build", "symlink"}, finding.Rule) {
					t.Errorf("%s points to %q, line %d", short(finding), finding.At.File, finding.At.Line)
				}
			}
			if d := cmp.Diff(f.accepts, shorts(result.Accepted)); d != "" {
				t.Errorf("accepted (-want +got):\n%s", d)
			}
			var unused []string
			for _, u := range result.Unused {
				unused = append(unused, fmt.Sprintf("%d %s", u.Line, u.Message))
			}
			if d := cmp.Diff(f.unused, unused); d != "" {
				t.Errorf("unused (-want +got):\n%s", d)
			}
			for _, a := range result.Assumed {
				if strings.Contains(a.What, "ENC[") {
					t.Errorf("ciphertext is taken for a name: %s", a.What)
				}
			}
			var assumed []string
			for _, a := range result.Assumed {
				assumed = append(assumed, a.What)
			}
			if d := cmp.Diff(f.assumes, assumed); len(f.assumes) > 0 && d != "" {
				t.Errorf("assumed (-want +got):\n%s", d)
			}
			got := fmt.Sprintf("%d of %d", result.Ready, result.Tiers)
			if len(result.Unsure) > 0 {
				got += fmt.Sprintf(", %d unsure", len(result.Unsure))
			}
			if f.ready != "" && f.ready != got {
				t.Errorf("ready: %s, want %s", got, f.ready)
			}
		})
	}
}

// TestEveryRuleHasAFixture keeps a rule from being added, or lost, without anyone noticing: a
// fixture lists exactly what is found in it, so that one whose rule does nothing fails.
func TestEveryRuleHasAFixture(t *testing.T) {
	found := map[string]bool{}
	for _, f := range fixtures(t) {
		for _, line := range f.finds {
			found[strings.Fields(line)[1]] = true
		}
	}
	for _, r := range audit.Rules() {
		if !found[r.ID] {
			t.Errorf("no fixture finds %s", r.ID)
		}
		page, err := audit.Explain(r.ID)
		if err != nil {
			t.Error(err)
		}
		for _, part := range []string{"# " + r.ID, "## Why", "## Example", "## Fix"} {
			if !strings.Contains(page, part) {
				t.Errorf("the page of %s has no %q", r.ID, part)
			}
		}
	}
}

// TestEveryRuleHasANearMiss keeps every rule from finding too much: for each there is a repository one
// step away from its fault in which it finds nothing.
func TestEveryRuleHasANearMiss(t *testing.T) {
	all := fixtures(t)
	faults := map[string]fixture{}
	for _, f := range all {
		faults[f.name] = f
	}
	missed := map[string]bool{}
	for _, f := range all {
		for _, rule := range f.nearMissOf {
			missed[rule] = true
			if err := audit.CheckRules([]string{rule}); err != nil {
				t.Errorf("%s: %v", f.name, err)
			}
			if !finds(faults[f.like], rule) {
				t.Errorf("%s is near no fault: %q does not find %s", f.name, f.like, rule)
			}
			result, _ := f.audit(t)
			for _, finding := range slices.Concat(result.Findings, result.Accepted) {
				if finding.Rule == rule {
					t.Errorf("%s: %s", f.name, short(finding))
				}
			}
		}
	}
	for _, r := range audit.Rules() {
		if !missed[r.ID] {
			t.Errorf("no fixture is a near miss of %s", r.ID)
		}
	}
}

// finds reports whether a fixture is one of a rule's faults.
func finds(f fixture, rule string) bool {
	return slices.ContainsFunc(f.finds, func(line string) bool { return strings.Fields(line)[1] == rule })
}

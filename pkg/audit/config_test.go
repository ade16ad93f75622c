package audit_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/standup-sh/standup/pkg/audit"
	"github.com/standup-sh/standup/pkg/tiers"
)

// TestAcceptanceOfWhatIsLeftOut keeps an acceptance from being called useless because the finding that
// it accepts is not asked for.
func TestAcceptanceOfWhatIsLeftOut(t *testing.T) {
	f := unpack(t, filepath.Join("testdata", "standup-yaml.txtar"))
	all, _ := f.audit(t)
	for _, only := range []audit.Options{{Severity: tiers.Error}, {Rules: []string{"cycle"}}} {
		result, _ := f.auditOnly(t, only)
		if !slices.Equal(result.Unused, all.Unused) {
			t.Errorf("%v: unused %v, want %v", only, result.Unused, all.Unused)
		}
		if len(result.Findings) > 0 || len(result.Accepted) > 0 {
			t.Errorf("%v: found %v and accepted %v", only, result.Findings, result.Accepted)
		}
	}
}

// TestBadConfig lists what can be wrong with a configuration: each mistake is told once, with its line.
func TestBadConfig(t *testing.T) {
	for _, test := range []struct {
		name, config string
		want         []string
	}{
		{"unknown fields", "beforeFlx: {}\nbeforeFlux:\n  kind: [a/B]\n", []string{
			`line 1: the document has no field "beforeFlx", only accept and beforeFlux`,
			`line 3: beforeFlux has no field "kind", only crds, groups, helmfile, kinds, objects and platform`,
		}},
		{"a field twice", "accept: []\nbeforeFlux: {}\naccept: []\n", []string{`line 3: the document has the field "accept" twice`}},
		{"two documents", "accept: []\n---\nbeforeFlux: {}\n", []string{"line 2: a second document begins here, and only one is read: put all into the first"}},
		{"a second document that cannot be read", "accept: []\n---\nbad: [\n", []string{"yaml: line 3: did not find expected node content"}},
		{"other types", "beforeFlux:\n  platform: [k3s]\n  groups: {a: b}\n  crds: [[x]]\naccept:\n  - cycle\n  - {rule: cycle, reason: [x], expires: 2030-01-01}\n", []string{
			"line 2: platform is not a string", "line 3: groups is not a list", "line 4: an entry of crds is not a string",
			"line 6: an entry of accept is not a mapping", "line 7: reason is not a string",
		}},
		{"not even a mapping", "- accept\n", []string{"line 1: the document is not a mapping"}},
		{"other forms", "beforeFlux:\n  kinds: [Kafka, a/b/C, a/]\n  objects: [x, Secret/a/b/c]\n", []string{
			`line 2: "Kafka" in kinds is not of the form group/Kind`, `line 2: "a/b/C" in kinds is not of the form group/Kind`,
			`line 2: "a/" in kinds is not of the form group/Kind`,
			`line 3: "x" in objects is not of the form Kind/namespace/name or Kind/name`,
			`line 3: "Secret/a/b/c" in objects is not of the form Kind/namespace/name or Kind/name`,
		}},
		{"acceptances", "accept:\n  - {reason: x}\n  - {rule: cycles, reason: x}\n  - {rule: cycle, expires: 2030-01-01}\n  - {rule: cycle, reason: x}\n  - {rule: cycle, reason: x, expires: soon}\n  - {rule: cycle, teir: x}\n", []string{
			"line 2: an entry of accept needs a rule", `line 3: there is no rule "cycles"`, "line 4: accepting cycle needs a reason",
			"line 5: accepting cycle needs a date on which it expires", `line 6: expires "soon" is not a date like 2027-06-30`,
			`line 7: an entry of accept has no field "teir", only expires, object, reason, rule and tier`,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := audit.ParseConfig(audit.ConfigFile, []byte(test.config))
			if err == nil {
				t.Fatal("it was taken")
			}
			var got []string
			for line := range strings.SplitSeq(err.Error(), "\n") {
				got = append(got, strings.TrimPrefix(line, "reading .standup.yaml: "))
			}
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// TestEmptyConfig takes fields whose entries are all commented out for what they are.
func TestEmptyConfig(t *testing.T) {
	for _, config := range []string{"", "# later\n", "---\n", "beforeFlux:\naccept:\n", "beforeFlux:\n  platform:\n  crds:\n"} {
		c, err := audit.ParseConfig(audit.ConfigFile, []byte(config))
		if err != nil {
			t.Errorf("%q: %v", config, err)
		} else if d := cmp.Diff(audit.Before{}, c.Before); d != "" || len(c.Accept) > 0 {
			t.Errorf("%q: %v", config, c)
		}
	}
}

func TestConfigOfAnotherName(t *testing.T) {
	_, err := audit.LoadConfig(fstest.MapFS{".standup.yml": {Data: []byte("accept: []\n")}}, nil)
	if want := "reading .standup.yml: its name has to be .standup.yaml"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

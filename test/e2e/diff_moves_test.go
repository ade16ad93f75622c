package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/standup-sh/standup/pkg/report"
)

// TestE2EDiffMovesAreWhatFluxDoes merges a change that moves objects between tiers in every way that
// diff tells apart, and compares what it said with what became of the objects.
func TestE2EDiffMovesAreWhatFluxDoes(t *testing.T) {
	e := newCrdsEnv(t)
	before, after := moves()
	e.push(before)
	var names []string
	for name := range before {
		if tier, ok := strings.CutPrefix(name, "clusters/test/tiers/"); ok {
			names = append(names, strings.TrimSuffix(tier, ".yaml"))
		}
	}
	e.waitReady(names...)
	var gone []string
	for name := range before {
		if _, ok := after[name]; !ok {
			gone = append(gone, name)
		}
	}
	e.edit(after, gone...)
	said := standup(t, e.Cluster, e.repo.Dir, "diff", "--path", e.path, "-o", "json")
	var d report.DiffDocument
	if err := json.Unmarshal([]byte(said.stdout), &d); err != nil {
		t.Fatalf("%v\n%s", err, said.stderr)
	}
	e.restore()
	uids := map[string]string{}
	for _, m := range d.Moves {
		uids[m.Object], _ = e.configMap(m.Object)
	}
	for _, l := range d.Losses {
		uids[l.Object], _ = e.configMap(l.Object)
	}
	e.push(after)
	e.fetch()
	met := map[string]int{}
	for _, m := range d.Moves {
		t.Run(m.Object, func(t *testing.T) {
			uid := e.settled(t, m.Object, m.To[strings.LastIndex(m.To, "/")+1:])
			real := "adopted"
			if uid != uids[m.Object] {
				real = "deleted and re-created"
			}
			t.Logf("%s -> %s: %s (%s), and was %s", m.From, m.To, m.Outcome, m.Why, real)
			if m.Outcome != real && m.Outcome != "adopted or re-created" {
				t.Errorf("diff says that it is %s", m.Outcome)
			}
			met[m.Outcome]++
		})
	}
	for _, l := range d.Losses {
		if !strings.HasPrefix(l.Object, "ConfigMap/") {
			continue
		}
		t.Run(l.Object, func(t *testing.T) {
			if l.Deleted {
				e.settled(t, l.Object, "")
			} else if uid, _ := e.configMap(l.Object); uid != uids[l.Object] {
				t.Error("diff says that it stays")
			}
			met["lost"]++
		})
	}
	if len(d.Moves) != len(moveCases()) || met["lost"] < 2 {
		t.Errorf("%d moves and %d losses: %v", len(d.Moves), met["lost"], met)
	}
}

// restore takes back what edit has done.
func (e *crdsEnv) restore() {
	e.t.Helper()
	for _, args := range [][]string{{"reset", "--quiet", "--hard"}, {"clean", "--quiet", "-fd"}} {
		if out, err := exec.CommandContext(e.t.Context(), "git", append([]string{"-C", e.repo.Dir}, args...)...).CombinedOutput(); err != nil {
			e.t.Fatalf("git %s: %v: %s", args[0], err, out)
		}
	}
}

// settled waits until a ConfigMap bears the label of a tier, or for "" until it is gone, and returns its UID.
func (e *crdsEnv) settled(t *testing.T, object, tier string) string {
	t.Helper()
	uid, owner := "", ""
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		uid, owner = e.configMap(object)
		return owner == tier, nil
	})
	if err != nil {
		t.Fatalf("belongs to %q, want %q: %v", owner, tier, err)
	}
	return uid
}

// configMap returns the UID of a ConfigMap and the tier whose label it bears; "" if it is not there.
func (e *crdsEnv) configMap(object string) (uid, tier string) {
	e.t.Helper()
	name := object[strings.LastIndex(object, "/")+1:]
	o, err := e.Get(e.t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "default", name)
	if apierrors.IsNotFound(err) || err == nil && o.GetDeletionTimestamp() != nil {
		return "", ""
	}
	if err != nil {
		e.t.Fatal(err)
	}
	return string(o.GetUID()), o.GetLabels()["kustomize.toolkit.fluxcd.io/name"]
}

// moveCase is a way of moving an object of the case's name: the tiers before and after, by name.
type moveCase struct {
	before, after map[string]string
	// from holds the object before, to after.
	from, to string
	// object is added to the metadata of the object.
	object string
}

func moveCases() map[string]moveCase {
	tier := func(extra string, dependsOn ...string) func(name string) string {
		return func(name string) string { return tierFile(name, extra, dependsOn...) }
	}
	tiers := func(pairs ...any) map[string]string {
		out := map[string]string{}
		for i := 0; i+1 < len(pairs); i += 2 {
			name := pairs[i].(string)
			out[name] = pairs[i+1].(func(string) string)(name)
		}
		return out
	}
	plain := tier("")
	keeps := func(name string) string { return strings.Replace(plain(name), "prune: true", "prune: false", 1) }
	return map[string]moveCase{
		"deleted-with-tier": {tiers("z1-old", plain), tiers("a1-new", plain), "z1-old", "a1-new", ""},
		"deleted-while-other": {
			tiers("z2-old", plain, "a2-other", plain), tiers("a2-other", plain), "z2-old", "a2-other", "",
		},
		"waits-for-old": {tiers("a3-old", plain), tiers("a3-old", plain, "b3-new", tier("", "a3-old")), "a3-old", "b3-new", ""},
		"old-waits": {
			tiers("a4-to", plain, "b4-old", tier("", "a4-to")), tiers("a4-to", plain, "b4-old", tier("", "a4-to")), "b4-old", "a4-to", "",
		},
		"new-waits": {
			tiers("a5-old", plain, "b5-to", tier("", "a5-old")), tiers("a5-old", plain, "b5-to", tier("", "a5-old")), "a5-old", "b5-to", "",
		},
		"no-prune": {tiers("a6-old", keeps, "b6-to", plain), tiers("a6-old", keeps, "b6-to", plain), "a6-old", "b6-to", ""},
		"opts-out": {
			tiers("a7-old", plain), tiers("b7-new", plain), "a7-old", "b7-new", ", annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}",
		},
		"orphaned":            {tiers("a8-old", tier("  deletionPolicy: Orphan\n")), tiers("b8-new", plain), "a8-old", "b8-new", ""},
		"no-order":            {tiers("a9-old", plain, "b9-to", plain), tiers("a9-old", plain, "b9-to", plain), "a9-old", "b9-to", ""},
		"to-new":              {tiers("a10-old", plain), tiers("a10-old", plain, "b10-new", plain), "a10-old", "b10-new", ""},
		"new-waits-for-third": {tiers("a11-old", plain, "b11-dep", plain), tiers("a11-new", tier("", "b11-dep"), "b11-dep", plain), "a11-old", "a11-new", ""},
	}
}

// moves are the files of all cases before and after, of an object that goes and one that stays, and of
// many other tiers.
func moves() (before, after map[string]string) {
	before, after = map[string]string{}, map[string]string{}
	for name, c := range moveCases() {
		for tier, file := range c.before {
			before["clusters/test/tiers/"+tier+".yaml"], before[tier+"/own.yaml"] = file, configMapFile("own-"+tier)
		}
		for tier, file := range c.after {
			after["clusters/test/tiers/"+tier+".yaml"], after[tier+"/own.yaml"] = file, configMapFile("own-"+tier)
		}
		object := strings.Replace(configMapFile(name), "namespace: default", "namespace: default"+c.object, 1)
		before[c.from+"/"+name+".yaml"], after[c.to+"/"+name+".yaml"] = object, object
	}
	for _, files := range []map[string]string{before, after} {
		files["clusters/test/tiers/losing.yaml"], files["losing/own.yaml"] = tierFile("losing", ""), configMapFile("own-losing")
		var fill []string
		for i := range 150 {
			fill = append(fill, tierFile(fmt.Sprintf("m-%d", i), "  suspend: true\n"))
		}
		files["clusters/test/others.yaml"] = strings.Join(fill, "---\n")
	}
	// With as much to change, the root prunes only after the new tiers have made their first pass.
	after["clusters/test/others.yaml"] = strings.ReplaceAll(after["clusters/test/others.yaml"], "interval: 1h", "interval: 2h")
	before["losing/gone.yaml"] = configMapFile("gone")
	before["losing/kept.yaml"] = strings.Replace(configMapFile("kept"), "namespace: default", "namespace: default, annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}", 1)
	return before, after
}

package build

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// filled is a cache in which every binary and asset exists already.
func filled(t *testing.T) Options {
	t.Helper()
	o := Options{Components: All(), Cache: t.TempDir(), Modules: nestedModules(t)}
	b := &builder{Options: o}
	for _, m := range modules() {
		target, err := b.target(m)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range target.components {
			write(t, target.binary(c))
		}
		for _, a := range target.assets {
			write(t, filepath.Join(target.asset(a), "file.yaml"))
		}
	}
	return o
}

func nestedModules(t *testing.T) string {
	t.Helper()
	dir, err := ModulesDir(".")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("x"), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestNothingIsBuiltThatTheCacheHas(t *testing.T) {
	o := filled(t)
	t.Setenv("PATH", "") // no go command, no build
	o.Progress = func(e Event) { t.Errorf("progress %+v", e) }
	binaries, err := Ensure(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range All() {
		if path := binaries.Path(c); !strings.HasPrefix(path, o.Cache) || filepath.Base(path) != string(c) {
			t.Errorf("%s is at %q", c, path)
		}
	}
	if n := len(binaries.CRDDirs()); n != 2 {
		t.Errorf("got %d directories with CRDs, want 2", n)
	}
	if n := len(binaries.StageDirs()); n != 3 {
		t.Errorf("got %d directories with stages, want 3", n)
	}
}

func TestAModuleThatChangesHasAPlaceOfItsOwn(t *testing.T) {
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(nestedModules(t))); err != nil {
		t.Fatal(err)
	}
	places := func() map[string]string {
		b := &builder{Options: Options{Components: All(), Cache: "/cache", Modules: copied}}
		out := map[string]string{}
		for _, m := range modules() {
			target, err := b.target(m)
			if err != nil {
				t.Fatal(err)
			}
			out[m.name] = target.dir
		}
		return out
	}
	before := places()
	sum := filepath.Join(copied, "flux", "go.sum")
	if err := os.WriteFile(sum, []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, dir := range places() {
		if changed := dir != before[name]; changed != (name == "flux") {
			t.Errorf("%s: moved=%v after flux/go.sum changed", name, changed)
		}
	}
}

func TestOneBuilderAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lockFile(t.Context(), path, func() { t.Error("waits for nobody") })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("waited long enough")
	waited := false
	_, err = lockFile(ctx, path, func() { waited = true; cancel(enough) })
	if !waited || !errors.Is(err, enough) {
		t.Errorf("waited=%v, got %v", waited, err)
	}
	unlock()
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
	defer stop()
	unlock, err = lockFile(ctx, path, func() {})
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

func TestOutsideACloneTheErrorSaysSo(t *testing.T) {
	dir := t.TempDir()
	_, err := ModulesDir(dir)
	want := "finding test/cluster/modules above " + dir + ": not inside a clone of github.com/standup-sh/standup"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestUnknownComponentIsRefused(t *testing.T) {
	_, err := Ensure(t.Context(), Options{Components: []Component{"kubelet"}})
	if want := `building "kubelet": no such component`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestPrinterNamesTheBinaryAndHowMany(t *testing.T) {
	var out strings.Builder
	report := Printer(&out)
	report(Event{Step: Started, Component: Etcd, N: 1, M: 7})
	report(Event{Step: Running, Component: Etcd, N: 1, M: 7, Elapsed: 20 * time.Second})
	report(Event{Step: Finished, Component: Etcd, N: 1, M: 7, Elapsed: 25400 * time.Millisecond})
	report(Event{Step: Waiting, Component: APIServer, N: 2, M: 7, Elapsed: time.Minute})
	want := `building etcd (1 of 7)
building etcd (1 of 7), 20s
built etcd (1 of 7) in 25s
waiting 1m0s for another build of kube-apiserver
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestAFailedBuildCarriesTheCompilersWords(t *testing.T) {
	modules := t.TempDir()
	if err := os.CopyFS(modules, os.DirFS(nestedModules(t))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(modules, "etcd", "go.mod"), []byte("module broken\n\ngo 1.26\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	_, err := Ensure(t.Context(), Options{Components: []Component{Etcd}, Cache: cache, Modules: modules})
	if err == nil || !strings.HasPrefix(err.Error(), "building etcd: exit status 1\n") ||
		!strings.Contains(err.Error(), "go.etcd.io/etcd/server/v3") {
		t.Errorf("got %v, want the go command's own words", err)
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "*", "bin", "*")); len(left) > 0 {
		t.Errorf("left %v behind", left)
	}
}

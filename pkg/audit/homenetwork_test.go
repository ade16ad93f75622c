package audit_test

import (
	"testing"

	"github.com/standup-sh/standup/pkg/audit"
	"github.com/standup-sh/standup/test/homenetwork"
)

func TestHomeNetworkWedged(t *testing.T) {
	for _, env := range []string{"clusters/dev", "clusters/prod"} {
		dir := t.TempDir()
		if err := homenetwork.Write(dir, homenetwork.Wedged); err != nil {
			t.Fatal(err)
		}
		res := run(t, load(t, dir, env), audit.Options{})
		t.Logf("%s: %+v\n%s", env, res.Findings, lines(res.Findings))
	}
}

func TestHomeNetworkRepaired(t *testing.T) {
	dir := t.TempDir()
	if err := homenetwork.Write(dir, homenetwork.Repaired); err != nil {
		t.Fatal(err)
	}
	res := run(t, load(t, dir, "clusters/prod"), audit.Options{})
	t.Logf("%s", lines(res.Findings))
	t.Logf("%+v", res.Assumed)
	for _, k := range res.Kinds {
		t.Logf("%+v", k)
	}
}

package audit_test

import (
	"path/filepath"
	"slices"
	"testing"

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

package audit

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/standup-sh/standup/pkg/tiers"
)

// Rule is one thing that an audit looks for.
type Rule struct {
	// ID is stable: it is what configurations, suppressions and fingerprints name.
	ID string
	// Severity is what a finding weighs at most: weak evidence makes it weigh less.
	Severity tiers.Severity
	// Title is one line.
	Title string
}

//go:embed rules/*.md
var pages embed.FS

// Explain returns a rule's page, as Markdown: what it finds, why, an example and the way out.
func Explain(id string) (string, error) {
	page, err := pages.ReadFile("rules/" + id + ".md")
	if err != nil {
		return "", &UnknownRuleError{ID: id}
	}
	return string(page), nil
}

// UnknownRuleError says that there is no such rule.
type UnknownRuleError struct{ ID string }

func (e *UnknownRuleError) Error() string {
	ids := make([]string, 0, len(Rules()))
	for _, r := range Rules() {
		ids = append(ids, r.ID)
	}
	return fmt.Sprintf("there is no rule %q: the rules are %s", e.ID, strings.Join(ids, ", "))
}

// Rules returns every rule, the heaviest first, then in the order in which one reads about them.
func Rules() []Rule {
	return []Rule{
		{samePassSecondOrder, tiers.Error, "An object whose kind an operator creates is in the same pass as what makes the operator create it"},
		{constraintBesideTemplate, tiers.Error, "An instance is in the same pass as the template that defines its kind"},
		{samePassChart, tiers.Error, "An object is in the same pass as the HelmRelease whose chart brings its kind"},
		{classBeforeChart, tiers.Error, "A Class is applied a stage before the HelmRelease whose chart brings its kind"},
		{providerDownstream, tiers.Error, "What brings a kind can come up only after the tier that needs the kind"},
		{providerNeverRuns, tiers.Error, "The HelmRelease that brings a kind can never run"},
		{missingDependency, tiers.Error, "A tier depends on a Kustomization that does not exist"},
		{dependsOnRelease, tiers.Error, "A tier depends on a HelmRelease as if it were a Kustomization"},
		{dependsOnSuspended, tiers.Error, "A tier depends on one that git keeps suspended"},
		{waitsForSuspended, tiers.Error, "A tier waits for something it applies that git keeps suspended"},
		{waitsForMissing, tiers.Error, "A tier's health check names what nothing makes"},
		{invalidExpression, tiers.Error, "An expression of a tier does not compile"},
		{cycle, tiers.Error, "Tiers depend on each other in a circle"},
		{childOfWaitingParent, tiers.Error, "A tier depends on the parent that waits for it"},
		{ownInput, tiers.Error, "A tier holds what its own pass has to read first"},
		{inputDownstream, tiers.Error, "What a tier's pass has to read comes only after the tier"},
		{samePassNamespace, tiers.Error, "A namespace that a HelmRelease creates is used in the same pass"},
		{namespaceDownstream, tiers.Error, "A namespace comes only after the tier that needs it"},
		{noNamespace, tiers.Error, "An object has no namespace, and its kind needs one"},
		{samePassAccount, tiers.Error, "A bare Pod is in the same pass as its ServiceAccount"},
		{useDownstream, tiers.Error, "A tier waits for an object that uses what comes only after the tier"},
		{encryptedWithoutKey, tiers.Error, "Something that SOPS has encrypted is in a tier without decryption"},
		{crossNamespaceSource, tiers.Error, "A tier reads a source in another namespace, which the controllers forbid"},
		{releaseNeverHealthy, tiers.Error, "A HelmRelease can never run, and a tier may wait for it"},
		{problemPath, tiers.Error, "A tier's path does not exist"},
		{problemFile, tiers.Error, "A kustomization names a file that does not exist"},
		{problemUnreadable, tiers.Error, "A file cannot be parsed"},
		{problemInvalid, tiers.Error, "A Kustomization cannot be understood"},
		{problemBuild, tiers.Error, "A tier cannot be built"},
		{problemVariable, tiers.Error, "A tier uses a variable that nothing defines"},
		{problemDuplicate, tiers.Error, "A Kustomization is applied by two tiers"},
		{problemArtifact, tiers.Error, "An ArtifactGenerator copies what does not exist"},
		{versionNotServed, tiers.Error, "No CRD in git serves the version that an object is written in"},
		{providerMissing, tiers.Warning, "Something known brings a kind, and nothing in git installs it"},
		{providerNotUpstream, tiers.Warning, "A kind's provider is not upstream of the tier that needs it"},
		{providerNotAwaited, tiers.Warning, "A kind's provider is upstream but nothing waits until the kind exists"},
		{inputNotUpstream, tiers.Warning, "What a tier's pass has to read is not upstream of it"},
		{inputNotAwaited, tiers.Warning, "What a tier's pass has to read is made from an object upstream, and nothing waits until it is"},
		{namespaceNotUpstream, tiers.Warning, "A namespace is not upstream of the tier that needs it"},
		{unorderedUse, tiers.Warning, "An object uses what another tier provides, with no path between them"},
		{sharedObject, tiers.Warning, "Two tiers apply the same object"},
		{literalToken, tiers.Warning, "A ${TOKEN} would reach the cluster as it stands"},
		{problemRemote, tiers.Warning, "A base lies in another place and was not fetched"},
		{problemSymlink, tiers.Warning, "A file is reached through a symbolic link, which no artifact holds"},
		{problemResourceSet, tiers.Warning, "What a ResourceSet generates is not known"},
		{leafGates, tiers.Info, "A leaf that gates holds up what waits for its parent"},
		{noRetryInterval, tiers.Info, "A retry is expected and would come only after the whole interval"},
	}
}

// The ids of the rules.
const (
	samePassSecondOrder      = "same-pass-second-order"
	constraintBesideTemplate = "constraint-beside-template"
	samePassChart            = "same-pass-chart"
	classBeforeChart         = "class-before-chart"
	providerDownstream       = "provider-downstream"
	providerNeverRuns        = "provider-never-runs"
	missingDependency        = "missing-dependency"
	dependsOnRelease         = "depends-on-helmrelease"
	dependsOnSuspended       = "depends-on-suspended"
	waitsForSuspended        = "waits-for-suspended"
	waitsForMissing          = "waits-for-missing"
	invalidExpression        = "invalid-expression"
	cycle                    = "cycle"
	childOfWaitingParent     = "child-depends-on-waiting-parent"
	ownInput                 = "own-input"
	inputDownstream          = "input-downstream"
	samePassNamespace        = "same-pass-namespace"
	namespaceDownstream      = "namespace-downstream"
	noNamespace              = "no-namespace"
	samePassAccount          = "same-pass-serviceaccount"
	useDownstream            = "use-downstream"
	encryptedWithoutKey      = "encrypted-without-decryption"
	crossNamespaceSource     = "cross-namespace-source"
	releaseNeverHealthy      = "release-never-healthy"
	problemBuild             = "build"
	problemPath              = "missing-path"
	problemFile              = "missing-file"
	problemUnreadable        = "unreadable"
	problemInvalid           = "invalid"
	problemVariable          = "unknown-variable"
	problemDuplicate         = "duplicate"
	problemRemote            = "remote-base"
	problemArtifact          = "artifact"
	problemSymlink           = "symlink"
	problemResourceSet       = "resourceset"
	versionNotServed         = "version-not-served"
	providerMissing          = "provider-missing"
	providerNotUpstream      = "provider-not-upstream"
	providerNotAwaited       = "provider-not-awaited"
	inputNotUpstream         = "input-not-upstream"
	inputNotAwaited          = "input-not-awaited"
	namespaceNotUpstream     = "namespace-not-upstream"
	unorderedUse             = "unordered-use"
	sharedObject             = "shared-object"
	literalToken             = "literal-token"
	leafGates                = "leaf-gates"
	noRetryInterval          = "no-retry-interval"
)

func severityOf(id string) tiers.Severity {
	for _, r := range Rules() {
		if r.ID == id {
			return r.Severity
		}
	}
	return tiers.Warning
}

// CheckRules reports the first id that is no rule.
func CheckRules(ids []string) error {
	for _, id := range ids {
		if !slices.ContainsFunc(Rules(), func(r Rule) bool { return r.ID == id }) {
			return &UnknownRuleError{ID: id}
		}
	}
	return nil
}

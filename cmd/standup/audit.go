package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/standup-sh/standup/pkg/audit"
	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/pkg/repo"
	"github.com/standup-sh/standup/pkg/report"
	"github.com/standup-sh/standup/pkg/tiers"
)

const (
	flagExplain  = "explain"
	flagSeverity = "severity"
	flagRules    = "rules"
	flagKinds    = "kinds"
)

func (a *app) auditCommand() *cli.Command {
	return &cli.Command{
		Name:  "audit",
		Usage: "prove from git alone that the cluster can come up from cold",
		Description: `Replays Flux's rules over the rendered tiers, from an empty cluster until nothing moves any more.
What is left can never come up: each is named with its first cause, how much it blocks, and the
smallest change to git that mends it. Where a step before Flux may have brought what is missing it is
a warning, and the tiers count as those of which git alone does not tell. Needs no cluster and no
network. What a bootstrap step brings, and findings to live with, are declared in .standup.yaml.
Charts that lie in the repository are rendered; of others the catalogue knows the kinds, unless
--charts fetches them.

   standup audit --path clusters/prod                    before a merge; exit 1 on errors
   standup audit -o sarif > standup.sarif                for code scanning
   standup audit -o html > audit.html                    for people, with a browser
   standup audit --explain same-pass-second-order        what a rule means`,
		Flags: flags(gitFlags(), []cli.Flag{
			namespaceFlag(), outputFlag(report.AuditFormats()...),
			stringFlag(flagSeverity, "info", "leave out what weighs less than `SEVERITY`: error, warning, info"),
			&cli.StringSliceFlag{Name: flagRules, Usage: "only these `RULES`, by id (comma-separated)", EnvVars: env(flagRules)},
			stringFlag(flagExplain, "", "print the page of a `RULE`, or of \"all\" one line each, and stop"),
			boolFlag(flagKinds, "with -o text: where every kind comes from, too"),
		}, kindFlags(), commonFlags()),
		Action: a.audit,
	}
}

func (a *app) audit(c *cli.Context) error {
	if id := c.String(flagExplain); id != "" {
		return a.explainRule(id)
	}
	options, err := auditOptions(c)
	if err != nil {
		return err
	}
	tree, err := openRepo(c)
	if err != nil {
		return err
	}
	result, err := a.auditTree(c, tree, options)
	if err != nil {
		return err
	}
	err = report.Audit(a.stdout, result, report.AuditOptions{
		Format: c.String(flagOutput), Namespace: c.String(flagNamespace), Files: tree.FS(), Config: audit.ConfigFile,
		Version: version(), Kinds: c.Bool(flagKinds),
	})
	if err != nil {
		return err
	}
	if result.Errors() > 0 {
		return notReady{errSilent}
	}
	return nil
}

// auditOptions are what the flags say.
func auditOptions(c *cli.Context) (audit.Options, error) {
	o := audit.Options{Severity: tiers.Severity(c.String(flagSeverity)), Rules: c.StringSlice(flagRules), Now: time.Now()}
	if !slices.Contains([]tiers.Severity{tiers.Error, tiers.Warning, tiers.Info}, o.Severity) {
		return o, &UsageError{Message: fmt.Sprintf("--severity %q is not one of error, warning, info", o.Severity)}
	}
	if err := audit.CheckRules(o.Rules); err != nil {
		return o, unknownRule(err)
	}
	return o, nil
}

func (a *app) auditTree(c *cli.Context, tree *repo.Tree, options audit.Options) (*audit.Result, error) {
	catalogue, err := loadCatalogue(c)
	if err != nil {
		return nil, err
	}
	if options.Config, err = audit.LoadConfig(tree.FS(), catalogue); err != nil {
		return nil, err
	}
	load, err := loadOptions(c, tree)
	if err != nil {
		return nil, err
	}
	load.Objects = true
	graph, err := tiers.Load(c.Context, tree, load)
	if err != nil {
		return nil, err
	}
	source, err := render.NewSource(tree, ".", "")
	if err != nil {
		return nil, err
	}
	options.Lines, options.Steps = source.Line, audit.FindSteps(tree.FS(), catalogue)
	rendered, err := a.renderCharts(c, tree, graph)
	if err != nil {
		return nil, err
	}
	options.Providers = crds.Providers(graph, catalogue, nil, rendered.Rendered)
	return audit.Run(graph, options), nil
}

// unknownRule says of a rule that does not exist which one is meant, and not all there are.
func unknownRule(err error) error {
	e, ok := errors.AsType[*audit.UnknownRuleError](err)
	if !ok {
		return &UsageError{Message: err.Error()}
	}
	ids := make([]string, 0, len(audit.Rules()))
	for _, r := range audit.Rules() {
		ids = append(ids, r.ID)
	}
	return &UsageError{
		Message: fmt.Sprintf("there is no rule %q%s", e.ID, didYouMean(e.ID, ids)),
		Hint:    "standup audit --explain all lists the rules",
	}
}

// explainRule prints a rule's page, or all rules one a line.
func (a *app) explainRule(id string) error {
	if id != "all" {
		page, err := audit.Explain(id)
		if err != nil {
			return unknownRule(err)
		}
		_, err = fmt.Fprintln(a.stdout, strings.TrimSuffix(page, "\n"))
		return err
	}
	for _, r := range audit.Rules() {
		if _, err := fmt.Fprintf(a.stdout, "%-8s %-30s %s\n", r.Severity, r.ID, r.Title); err != nil {
			return err
		}
	}
	return nil
}

package flux

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/ext"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// CheckHealthExpressions reports why healthCheckExprs can never call an object of a kind healthy: an
// expression whose value is no boolean, or one that names a field which objects of the kind do not have.
// Both compile, and end every health check with an error. Which values fields take on, git does not tell.
//
// It mirrors NewStatusReader, NewStatusEvaluator and NewExpression in fluxcd/pkg's runtime/cel.
func CheckHealthExpressions(checks []kustomize.CustomHealthCheck, gk schema.GroupKind) error {
	check := healthCheckOf(checks, gk)
	if check == nil {
		return nil
	}
	for _, e := range [][2]string{{"inProgress", check.InProgress}, {"failed", check.Failed}, {"current", check.Current}} {
		if e[1] == "" {
			continue
		}
		if err := checkHealthExpression(e[1], gk); err != nil {
			return fmt.Errorf("healthCheckExprs of %s: %s: %w", gk.Kind, e[0], err)
		}
	}
	return nil
}

// healthCheckOf is the entry for a kind, or else the one for all kinds of its group.
func healthCheckOf(checks []kustomize.CustomHealthCheck, gk schema.GroupKind) *kustomize.CustomHealthCheck {
	for _, kind := range []string{gk.Kind, ""} {
		i := slices.IndexFunc(checks, func(c kustomize.CustomHealthCheck) bool {
			return c.Kind == kind && schema.FromAPIVersionAndKind(c.APIVersion, kind).Group == gk.Group
		})
		if i >= 0 {
			return &checks[i]
		}
	}
	return nil
}

func checkHealthExpression(expr string, gk schema.GroupKind) error {
	options := []cel.EnvOption{
		cel.HomogeneousAggregateLiterals(), cel.DefaultUTCTimeZone(true), cel.CrossTypeNumericComparisons(true),
		cel.OptionalTypes(), ext.Strings(), ext.Sets(), ext.Encoders(),
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		return err
	}
	parsed, issues := env.Parse(expr)
	if issues.Err() != nil {
		return issues.Err()
	}
	names := freeNames(parsed.NativeRep().Expr())
	if fields, ok := fieldsOf(gk); ok {
		for _, name := range names {
			if !slices.Contains(fields, name) {
				return fmt.Errorf("%q: a %s has no field %s", expr, gk.Kind, name)
			}
		}
	}
	for _, name := range names {
		options = append(options, cel.Variable(name, cel.DynType))
	}
	if env, err = cel.NewEnv(options...); err != nil {
		return err
	}
	checked, issues := env.Check(parsed)
	if issues.Err() != nil {
		return nil // Flux does not check types: it may well have a value
	}
	if t := checked.OutputType(); t != cel.BoolType && t != cel.DynType {
		return fmt.Errorf("%q gives %s, not true or false", expr, t)
	}
	return nil
}

// fieldsOf lists the fields of kinds that are sure to have no others.
func fieldsOf(gk schema.GroupKind) ([]string, bool) {
	switch gk {
	case schema.GroupKind{Kind: "ConfigMap"}:
		return []string{"apiVersion", "kind", "metadata", "data", "binaryData", "immutable"}, true
	case schema.GroupKind{Kind: "Secret"}:
		return []string{"apiVersion", "kind", "metadata", "data", "type", "immutable"}, true
	}
	return nil, false
}

// freeNames lists the variables of an expression that it does not bind itself, sorted.
func freeNames(e celast.Expr) []string {
	found, bound := map[string]bool{}, map[string]bool{}
	celast.PostOrderVisit(e, celast.NewExprVisitor(func(e celast.Expr) {
		switch e.Kind() {
		case celast.IdentKind:
			found[strings.TrimPrefix(e.AsIdent(), ".")] = true
		case celast.ComprehensionKind:
			c := e.AsComprehension()
			bound[c.IterVar()], bound[c.IterVar2()], bound[c.AccuVar()] = true, true, true
		}
	}))
	maps.DeleteFunc(found, func(name string, _ bool) bool { return bound[name] })
	return slices.Sorted(maps.Keys(found))
}

package flux

import (
	"context"
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/runtime/cel"
	celtypes "github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/runtime"
)

// CheckExpressions reports the first CEL expression of a Kustomization that does not compile: one of
// healthCheckExprs or a readyExpr. Flux stalls such a Kustomization, and only git can change that.
//
// It mirrors Reconcile and checkDependencies in kustomize-controller's
// internal/controller/kustomization_controller.go.
func CheckExpressions(k *kustomizev1.Kustomization) error {
	if _, err := cel.NewStatusReader(k.Spec.HealthCheckExprs); err != nil {
		return fmt.Errorf("healthCheckExprs: %w", err)
	}
	for _, d := range k.Spec.DependsOn {
		if d.ReadyExpr == "" {
			continue
		}
		if p := new(Rules).compile(d.ReadyExpr); p.err != nil {
			return fmt.Errorf("readyExpr of %s: %w", d.Name, p.err)
		}
	}
	return nil
}

// program is a compiled readyExpr, or why it does not compile.
type program struct {
	expr *cel.Expression
	err  error
}

// evaluate mirrors evalReadyExpr in kustomize-controller's
// internal/controller/kustomization_controller.go: an expression that does not compile is final,
// one that fails on the objects as they are is retried. An empty reason means true.
func (r *Rules) evaluate(ctx context.Context, expr string, self, dep any, key Key) (DependencyReason, string) {
	p := r.compile(expr)
	if p.err != nil {
		return ExprInvalid, fmt.Sprintf("failed to evaluate dependency %s: %v", key.Name, p.err)
	}
	selfMap, err := runtime.DefaultUnstructuredConverter.ToUnstructured(self)
	if err != nil {
		return ExprError, fmt.Sprintf("failed to convert self object to map: %v", err)
	}
	depMap, err := runtime.DefaultUnstructuredConverter.ToUnstructured(dep)
	if err != nil {
		return ExprError, fmt.Sprintf("failed to convert dep object to map: %v", err)
	}
	ready, err := p.expr.EvaluateBoolean(ctx, map[string]any{"self": selfMap, "dep": depMap})
	if err != nil {
		return ExprError, err.Error()
	}
	if !ready {
		return ExprFalse, fmt.Sprintf("dependency '%s' is not ready according to readyExpr eval", key)
	}
	return "", ""
}

func (r *Rules) compile(expr string) *program {
	if p, ok := r.programs.Load(expr); ok {
		return p.(*program)
	}
	p := new(program)
	p.expr, p.err = cel.NewExpression(expr,
		cel.WithCompile(),
		cel.WithOutputType(celtypes.BoolType),
		cel.WithStructVariables("self", "dep"))
	stored, _ := r.programs.LoadOrStore(expr, p)
	return stored.(*program)
}

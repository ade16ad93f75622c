package flux

import (
	"context"
	"fmt"

	"github.com/fluxcd/pkg/runtime/cel"
	celtypes "github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/runtime"
)

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

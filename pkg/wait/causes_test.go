package wait

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestCausesAreDocumented keeps docs/causes.md complete: one row for each cause.
func TestCausesAreDocumented(t *testing.T) {
	docs, err := os.ReadFile("../../docs/causes.md")
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), "cause.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	causes := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Cause" {
			return true
		}
		causes++
		cause, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(docs), "\n| `"+cause+"` |") != 1 {
			t.Errorf("docs/causes.md does not have one row for %s", cause)
		}
		return true
	})
	if causes == 0 {
		t.Error("no causes found")
	}
}

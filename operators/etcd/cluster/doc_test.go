package cluster

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSteps: the steps of doc.go are those that decide takes, by the same names and in the same order.
func TestSteps(t *testing.T) {
	parse := func(file string) *ast.File {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	_, after, _ := strings.Cut(parse("doc.go").Doc.Text(), "# The steps\n")
	list, _, _ := strings.Cut(after, "\n# ")
	var documented []string
	for _, line := range regexp.MustCompile(`(?m)^\t(\w+)`).FindAllStringSubmatch(list, -1) {
		documented = append(documented, line[1])
	}
	var taken []string
	for _, declared := range parse("decide.go").Decls {
		decide, is := declared.(*ast.FuncDecl)
		if !is || decide.Name.Name != "decide" {
			continue
		}
		i := slices.IndexFunc(decide.Body.List, func(s ast.Stmt) bool { _, is := s.(*ast.SwitchStmt); return is })
		ast.Inspect(decide.Body.List[i], func(n ast.Node) bool {
			if call, is := n.(*ast.CallExpr); is && len(call.Args) > 0 {
				method, isMethod := call.Fun.(*ast.SelectorExpr)
				if first, is := call.Args[0].(*ast.Ident); is && isMethod && first.Name == "ec" {
					taken = append(taken, method.Sel.Name)
				}
			}
			return true
		})
	}
	if diff := cmp.Diff(documented, taken); diff != "" {
		t.Errorf("the steps of decide, and those of doc.go (-documented +taken):\n%s", diff)
	}
}

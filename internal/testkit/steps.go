package testkit

import (
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// documentedStep begins a line of the list in a package comment: the lines that go on with a step are indented further.
var documentedStep = regexp.MustCompile(`(?m)^\t([\w.]+) `)

// RequireSteps fails a test if the steps in a table are not those that doc.go has under "The steps", by the same names
// and in the same order. The step of another package is named with its package.
func RequireSteps[F any](t *testing.T, table []F) {
	t.Helper()
	doc, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(doc.Doc.Text(), "# The steps\n")
	list, _, _ := strings.Cut(after, "\n# ")
	var documented, taken []string
	for _, line := range documentedStep.FindAllStringSubmatch(list, -1) {
		documented = append(documented, line[1])
	}
	for _, step := range table {
		name := runtime.FuncForPC(reflect.ValueOf(step).Pointer()).Name()
		taken = append(taken, strings.TrimPrefix(name[strings.LastIndex(name, "/")+1:], doc.Name.Name+"."))
	}
	if diff := cmp.Diff(documented, taken); diff != "" {
		t.Errorf("the steps that are taken, and those of doc.go (-documented +taken):\n%s", diff)
	}
}

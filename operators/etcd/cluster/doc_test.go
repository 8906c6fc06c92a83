package cluster

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

// TestSteps: the steps of doc.go are those that decide takes, by the same names and in the same order.
func TestSteps(t *testing.T) {
	doc, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(doc.Doc.Text(), "# The steps\n")
	list, _, _ := strings.Cut(after, "\n# ")
	var documented []string
	for _, line := range regexp.MustCompile(`(?m)^\t(\w+\.\w+)`).FindAllStringSubmatch(list, -1) {
		documented = append(documented, line[1])
	}
	var taken []string
	for _, step := range steps {
		name := runtime.FuncForPC(reflect.ValueOf(step).Pointer()).Name()
		taken = append(taken, name[strings.LastIndex(name, "/")+1:])
	}
	if diff := cmp.Diff(documented, taken); diff != "" {
		t.Errorf("the steps of decide, and those of doc.go (-documented +taken):\n%s", diff)
	}
}

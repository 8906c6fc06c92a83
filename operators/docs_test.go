package operators

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/fairlead/internal/kit/docs"
)

// TestMessagesNameNoFile: whoever reads a message, or what kubectl explain says, has no copy of this repository. Pages of
// the documentation have their address, and are there.
func TestMessagesNameNoFile(t *testing.T) {
	file := regexp.MustCompile(`(?:https://[\w./-]+/)?[\w/-]+\.md\b`)
	check := func(where, text string) {
		t.Helper()
		for _, name := range file.FindAllString(text, -1) {
			page, is := strings.CutPrefix(name, docs.Base+"/")
			if is {
				readFile(t, "../docs/"+page)
			} else if !strings.HasPrefix(name, "https://") { // that of another project
				t.Errorf("%s names %s, which is a file of this repository", where, name)
			}
		}
	}
	crds, err := filepath.Glob("*/config/crd/*_*.yaml")
	if err != nil || len(crds) == 0 {
		t.Fatalf("no CRDs: %v", err)
	}
	for _, crd := range crds {
		check(crd, readFile(t, crd))
	}
	for _, root := range []string{"../cmd", "../internal/kit", "."} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err == nil && entry.Name() == "rig": // of the plugin's tests
				return fs.SkipDir
			case err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
				return err
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			pages := map[ast.Node]bool{}
			ast.Inspect(parsed, func(n ast.Node) bool {
				if call, is := n.(*ast.CallExpr); is {
					if f, is := call.Fun.(*ast.SelectorExpr); is && f.Sel.Name == "Page" && len(call.Args) == 1 {
						if text, is := call.Args[0].(*ast.BasicLit); is {
							pages[text] = true
							page, anchor, hasAnchor := strings.Cut(strings.Trim(text.Value, `"`), "#")
							if content := readFile(t, "../docs/"+page); hasAnchor && !hasHeading(content, anchor) {
								t.Errorf("%s: docs/%s has no heading #%s", path, page, anchor)
							}
						}
					}
				}
				if text, is := n.(*ast.BasicLit); is && text.Kind == token.STRING && !pages[text] {
					check(path, text.Value)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestOneAddressOfTheDocumentation: messages, alerts, dashboards and charts lead to the same one.
func TestOneAddressOfTheDocumentation(t *testing.T) {
	address := regexp.MustCompile(`https://fairlead\.example\.com/[^\s"` + "`" + `]*`)
	for _, file := range matching(t, "*/config/prometheus/rules.yaml", "*/config/grafana/*.json", "config/grafana/*/*.json", "config/chart/values.yaml", "*/config/crd/*_*.yaml") {
		for _, found := range address.FindAllString(readFile(t, file), -1) {
			if found != docs.Base && !strings.HasPrefix(found, docs.Base+"/") {
				t.Errorf("%s: %s is not below %s", file, found, docs.Base)
			}
		}
	}
	if values := readFile(t, "config/chart/values.yaml"); !strings.Contains(values, "\ndocumentation: "+docs.Base+"\n") {
		t.Errorf("operators/config/chart/values.yaml has another address than %s", docs.Base)
	}
}

package operators

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	word = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)
	// nameOf is a word of a comment that can only be a name: with a capital inside, or in a link of a doc comment.
	nameOf = regexp.MustCompile(`\b(?:[a-z][a-z0-9]*|Test|Benchmark)[A-Z]\w*\b|\[\*?(?:\w+\.)*([A-Za-z]\w*)\]`)
)

// ofOthers are names in the source of Kubernetes and etcd, whose rules the comments are about.
var ofOthers = map[string]bool{
	"allowedVersionRange": true, "bootstrapExistingClusterNoWAL": true, "mayAddMember": true, "mayPromoteMember": true, "mayRemoveMember": true,
	"requireAllTopologies": true, "rollbackTo": true,
}

// TestCommentsNameWhatIsThere: a name in a comment is one of something in the code, in a string, or in another file.
func TestCommentsNameWhatIsThere(t *testing.T) {
	known := map[string]bool{}
	type comment struct {
		at   token.Position
		text string
	}
	var comments []comment
	files := token.NewFileSet()
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(name, ".") && name != ".." || name == "bin" || name == "dist" || name == "node_modules"):
			return fs.SkipDir
		case entry.IsDir() || !entry.Type().IsRegular():
			return nil
		case filepath.Ext(name) != ".go":
			switch filepath.Ext(name) {
			case ".yaml", ".md", ".sh", ".tpl", ".mod", "":
				text, err := os.ReadFile(path)
				for _, w := range word.FindAllString(string(text), -1) {
					known[w] = true
				}
				return err
			}
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				known[n.Name] = true
			case *ast.BasicLit:
				for _, w := range word.FindAllString(n.Value, -1) {
					known[w] = true
				}
			}
			return true
		})
		for _, group := range file.Comments {
			for _, c := range group.List {
				if !strings.HasPrefix(c.Text, "// +") { // a marker
					comments = append(comments, comment{files.Position(c.Pos()), c.Text})
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(comments) < 5000 {
		t.Fatalf("%d lines of comments are read, which cannot be all", len(comments))
	}
	for _, c := range comments {
		for _, match := range nameOf.FindAllStringSubmatch(c.text, -1) {
			name := match[1]
			if name == "" {
				name = match[0]
			}
			if !known[name] && !ofOthers[name] {
				t.Errorf("%s: there is no %s", c.at, name)
			}
		}
	}
}

package operators

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestNoOperatorNeedsAnother: whoever reads one operator need not read another. Its
// packages may import each other.
func TestNoOperatorNeedsAnother(t *testing.T) {
	const all = "example.com/fairlead/operators"
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		operator, _, isInside := strings.Cut(filepath.ToSlash(path), "/")
		if err != nil || !isInside || filepath.Ext(path) != ".go" {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			own := all + "/" + operator
			if (imported == all || strings.HasPrefix(imported, all+"/")) && imported != own && !strings.HasPrefix(imported, own+"/") {
				t.Errorf("%s imports %s", path, imported)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

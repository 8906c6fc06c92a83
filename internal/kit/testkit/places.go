package testkit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
)

// A place is a call in the operator's package that writes. Lines are a range,
// because which line of a longer call a stack shows is up to the compiler.
type place struct {
	File        string // base name
	First, Last int
	Call        string // as written, such as r.client.Status().Patch
}

func (p place) String() string { return fmt.Sprintf("%s:%d %s", p.File, p.First, p.Call) }

func (p place) holds(s Site) bool {
	return s.File == p.File && p.First <= s.Line && s.Line <= p.Last
}

// writeNames are the names of what writes. A function or method is a write if
// it has such a name, with or without more words behind it (UpdateStatus,
// CreateOrPatch, DeleteAllOf), and its first parameter is a context: that is
// so in controller-runtime's client, in client-go's typed and dynamic clients,
// and in any interface cut out of them, and it leaves out a metric's Delete.
var writeNames = regexp.MustCompile(`^(Create|Update|Patch|Apply|Delete|Evict|Bind)([A-Z0-9].*)?$`)

// restVerbs are what begins a write with client-go's bare rest client.
var restVerbs = regexp.MustCompile(`^(Post|Put|Patch|Delete|Verb)$`)

// goPackage is what `go list` says of a package.
type goPackage struct {
	ImportPath, Dir, Export string
	GoFiles, CgoFiles       []string
	DepOnly                 bool
	Module                  *struct{ Path string }
}

// importPath is the import path of the package in a folder.
func importPath(ctx context.Context, dir string) (string, error) {
	out, err := goList(ctx, dir, "-f", "{{.ImportPath}}", ".")
	return strings.TrimSpace(string(out)), err
}

// findPlaces searches the package in dir for calls that write. A call counts
// if its name says so, or if it calls a function of another package of this
// module, such as the kit's, that itself contains such a call or calls one
// that does. Names are resolved by the type checker: imports come from the
// compiler's export data, so only this module is read as source.
func findPlaces(ctx context.Context, dir string) ([]place, error) {
	out, err := goList(ctx, dir, "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,CgoFiles,DepOnly,Module", ".")
	if err != nil {
		return nil, err
	}
	var ours []goPackage // dependencies first
	exports := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
		if p.Module != nil {
			ours = append(ours, p)
		}
	}
	if len(ours) == 0 {
		return nil, fmt.Errorf("%s is in no module", dir)
	}
	operator := ours[len(ours)-1]

	s := &placeSearch{fset: token.NewFileSet(), writers: map[string]bool{}}
	imports := importer.ForCompiler(s.fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data for %s", path)
		}
		return os.Open(exports[path])
	})
	for _, p := range ours {
		if p.Module.Path != operator.Module.Path {
			continue
		}
		files, info, err := s.check(p, imports)
		if err != nil {
			return nil, err
		}
		if p.ImportPath == operator.ImportPath {
			return s.placesIn(files, info)
		}
		s.learnWriters(files, info)
	}
	return nil, errors.New("go list did not list the package itself")
}

func goList(ctx context.Context, dir string, args ...string) ([]byte, error) {
	args = append([]string{"list"}, args...)
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "-race" && s.Value == "true" {
				// The export data of the build that runs these tests is in
				// the build cache, that of another is not.
				args = append([]string{"list", "-race"}, args[1:]...)
			}
		}
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list in %s: %w: %s", dir, err, complaint.String())
	}
	return out, nil
}

type placeSearch struct {
	fset    *token.FileSet
	writers map[string]bool // functions of this module that write, by full name
}

func (s *placeSearch) check(p goPackage, imports types.Importer) ([]*ast.File, *types.Info, error) {
	var files []*ast.File
	for _, name := range append(p.GoFiles, p.CgoFiles...) {
		f, err := parser.ParseFile(s.fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, nil, err
		}
		files = append(files, f)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: imports, FakeImportC: true}
	_, err := config.Check(p.ImportPath, s.fset, files, info)
	return files, info, err
}

// learnWriters notes which functions of a package write, until that makes no
// further one a writer.
func (s *placeSearch) learnWriters(files []*ast.File, info *types.Info) {
	for grew := true; grew; {
		grew = false
		for _, f := range files {
			for _, decl := range f.Decls {
				fn, ok := decl.(*ast.FuncDecl)
				if !ok || fn.Body == nil {
					continue
				}
				def, ok := info.Defs[fn.Name].(*types.Func)
				if !ok || s.writers[def.FullName()] {
					continue
				}
				if len(s.writesIn(fn.Body, info)) > 0 {
					s.writers[def.FullName()] = true
					grew = true
				}
			}
		}
	}
}

// placesIn are the places of the operator's own package.
func (s *placeSearch) placesIn(files []*ast.File, info *types.Info) ([]place, error) {
	var places []place
	var wrong []error
	for _, f := range files {
		for _, w := range s.writesIn(f, info) {
			first, last := s.fset.Position(w.whole.Pos()), s.fset.Position(w.whole.End())
			p := place{File: filepath.Base(first.Filename), First: first.Line, Last: last.Line, Call: types.ExprString(w.name)}
			if !w.called {
				wrong = append(wrong, fmt.Errorf("%s is used as a value: the sweep cannot tell where it is called", p))
			}
			for _, other := range places {
				if other.File == p.File && other.First == p.First && other.Last == p.Last {
					wrong = append(wrong, fmt.Errorf("%s and %s share a line: the sweep cannot tell them apart", other, p))
				}
			}
			places = append(places, p)
		}
	}
	return places, errors.Join(wrong...)
}

// writeExpr is a mention of something that writes.
type writeExpr struct {
	name   ast.Expr // what is mentioned
	whole  ast.Node // the call with all that is chained to it
	called bool
}

func (s *placeSearch) writesIn(root ast.Node, info *types.Info) []writeExpr {
	var found []writeExpr
	var stack []ast.Node // from root to the node being looked at
	ast.Inspect(root, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		stack = append(stack, n)
		id, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		fn, ok := info.Uses[id].(*types.Func)
		if !ok || !s.writes(fn) {
			return true
		}
		found = append(found, around(id, stack))
		return true
	})
	return found
}

// around climbs from a function's name to the expression that names it, to
// its call, and along the chain of calls that the call begins.
func around(id *ast.Ident, stack []ast.Node) writeExpr {
	w := writeExpr{name: id, whole: id}
	for i := len(stack) - 2; i >= 0; i-- {
		switch parent := stack[i].(type) {
		case *ast.SelectorExpr:
			if !w.called {
				w.name = parent
			}
		case *ast.IndexExpr, *ast.IndexListExpr, *ast.ParenExpr: // type arguments
		case *ast.CallExpr:
			if parent.Fun != w.whole {
				return w // it is an argument
			}
			w.called = true
		default:
			return w
		}
		w.whole = stack[i]
	}
	return w
}

func (s *placeSearch) writes(fn *types.Func) bool {
	fn = fn.Origin()
	if s.writers[fn.FullName()] {
		return true
	}
	if fn.Pkg() != nil && fn.Pkg().Path() == "k8s.io/client-go/rest" && restVerbs.MatchString(fn.Name()) {
		return true
	}
	params := fn.Signature().Params()
	return writeNames.MatchString(fn.Name()) && params.Len() > 0 && params.At(0).Type().String() == "context.Context"
}

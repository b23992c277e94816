package mutants

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// plantedBug is the environment variable that switches a bug on. An overlay adds a file of that
// name to each package that has bugs, with a variable of that name.
const plantedBug = "plantedBug"

// overlay has the contents that replace files of the module, by their names from its root.
type overlay map[string][]byte

// write writes the files and the list of them that go reads into a folder, and returns the list's
// name.
func (o overlay) write(root, dir string) (list string, err error) {
	replace := map[string]string{}
	for name, text := range o {
		file := filepath.Join(dir, strings.ReplaceAll(name, "/", "-"))
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, name)] = file
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list = filepath.Join(dir, "overlay.json")
	return list, os.WriteFile(list, text, 0o600)
}

// planted returns the source with all of the bugs in it, each behind its switch, and the errors of
// those that cannot be planted so.
func planted(root string, bugs []Mutant) (overlay, map[string]error, error) {
	added, without := map[string][]insertion{}, map[string]error{}
	for _, m := range bugs {
		text, err := m.behindSwitch(root)
		if err != nil {
			without[m.Name] = err
			continue
		}
		added[m.patch.file] = append(added[m.patch.file], text...)
	}
	for file, text := range added {
		slices.SortStableFunc(text, func(a, b insertion) int { return cmp.Compare(a.at, b.at) })
		added[file] = slices.Compact(text) // a parameter is named once
	}
	o, err := inserted(root, added, "string", "os.Getenv("+strconv.Quote(plantedBug)+")", "os")
	return o, without, err
}

// insertion is text to insert into a source file at an offset.
type insertion struct {
	at   int
	text string
}

// inserted returns the files with the insertions, and a file beside them that has the switch of
// that type, which is read once.
func inserted(root string, added map[string][]insertion, typ, read string, imports ...string) (overlay, error) {
	o := overlay{}
	for file, texts := range added {
		source, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return nil, err
		}
		slices.SortStableFunc(texts, func(a, b insertion) int { return cmp.Compare(a.at, b.at) })
		var text bytes.Buffer
		last := 0
		for _, in := range texts {
			text.Write(source[last:in.at])
			text.WriteString(in.text)
			last = in.at
		}
		text.Write(source[last:])
		o[file] = text.Bytes()
		parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.PackageClauseOnly)
		if err != nil {
			return nil, err
		}
		o[filepath.ToSlash(filepath.Join(filepath.Dir(file), "planted_bug.go"))] = fmt.Appendf(nil,
			"package %s\n\nimport (\n\t\"%s\"\n)\n\nvar %s %s = %s\n", parsed.Name, strings.Join(imports, "\"\n\t\""), plantedBug, typ, read)
	}
	return o, nil
}

// errOwnBuild is the error of a bug that no switch can turn on: it changes more than the bodies of
// functions.
var errOwnBuild = errors.New("it needs a build of its own")

// behindSwitch returns the insertions by which a file has the bug only while it is switched on: at
// the head of each function that the patch changes, a call of the changed one.
func (m Mutant) behindSwitch(root string) ([]insertion, error) {
	source, err := os.ReadFile(filepath.Join(root, m.patch.file))
	if err != nil {
		return nil, err
	}
	changed, err := m.apply(root)
	if err != nil {
		return nil, err
	}
	was, err := parse(m.patch.file, source)
	if err != nil {
		return nil, err
	}
	is, err := parse(m.patch.file, changed)
	if err != nil {
		return nil, err
	}
	if len(was.Decls) != len(is.Decls) {
		return nil, errOwnBuild
	}
	var added []insertion
	for i, d := range was.Decls {
		before, after := was.text(d), is.text(is.Decls[i])
		if before == after {
			continue
		}
		f, isFunc := d.(*ast.FuncDecl)
		g, staysFunc := is.Decls[i].(*ast.FuncDecl)
		if !isFunc || !staysFunc || f.Body == nil || g.Body == nil || was.head(f) != is.head(g) || recovers(g) {
			return nil, errOwnBuild
		}
		added = append(added, was.dispatch(f, m.Name, is.text(g.Body))...)
	}
	if added == nil {
		return nil, errOwnBuild // a comment that the compiler reads
	}
	return added, nil
}

// file is a Go file that was parsed.
type file struct {
	*ast.File
	name   string
	source []byte
	set    *token.FileSet
}

func parse(name string, source []byte) (file, error) {
	f := file{name: name, source: source, set: token.NewFileSet()}
	var err error
	f.File, err = parser.ParseFile(f.set, name, source, parser.SkipObjectResolution)
	return f, err
}

func (f file) offset(p token.Pos) int { return f.set.Position(p).Offset }

func (f file) text(n ast.Node) string {
	return string(f.source[f.offset(n.Pos()):f.offset(n.End())])
}

// head returns the text of a function before its body.
func (f file) head(d *ast.FuncDecl) string {
	return string(f.source[f.offset(d.Pos()):f.offset(d.Body.Pos())])
}

// dispatch returns the insertion that gives a function its other body while the bug is switched on.
// The body becomes that of a function literal which is given all parameters, so that a := in it
// means what it did. The compiler reports errors in it as lines of a file NAME.patch.
func (f file) dispatch(d *ast.FuncDecl, bug, body string) (added []insertion) {
	var params, args []string
	fields := d.Type.Params.List
	if d.Recv != nil && len(d.Recv.List[0].Names) > 0 {
		fields = append(slices.Clone(d.Recv.List), fields...)
	}
	for n, field := range fields {
		params = append(params, f.text(field))
		given := []string{fmt.Sprint("planted", n)}
		if field.Names == nil {
			added = append(added, insertion{f.offset(field.Pos()), given[0] + " "})
		} else {
			given = nil
		}
		for i, name := range field.Names {
			if name.Name == "_" {
				more := fmt.Sprintf("planted%d_%d", n, i)
				added = append(added, insertion{f.offset(name.End()), more})
				name = ast.NewIdent("_" + more)
			}
			given = append(given, name.Name)
		}
		if _, variadic := field.Type.(*ast.Ellipsis); variadic {
			given[0] += "..."
		}
		args = append(args, given...)
	}
	literal, returns := fmt.Sprintf("func(%s)", strings.Join(params, ", ")), "; return"
	if d.Type.Results != nil {
		literal, returns = "return "+literal+" "+f.text(d.Type.Results), ""
	}
	after := f.set.Position(d.Body.Lbrace + 1)
	text := fmt.Sprintf("if %s == %q { %s /*line %s.patch:1:1*/%s(%s)%s }; /*line %s:%d:%d*/",
		plantedBug, bug, literal, bug, body, strings.Join(args, ", "), returns, filepath.Base(f.name), after.Line, after.Column)
	return append(added, insertion{after.Offset, text})
}

// recovers reports whether a function itself calls recover, which does nothing one function further
// down.
func recovers(f *ast.FuncDecl) (found bool) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.Ident:
			found = found || n.Name == "recover"
		}
		return true
	})
	return found
}

package mutants

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// Mutation is a small change that was computed: a condition negated, a bound moved by one, a call
// or an assignment left out.
type Mutation struct {
	File   string // from the root of the module
	Line   int
	Func   string // that it is in
	Change string

	at [2]int // the line and the column that coverage has for it
}

// Name identifies the mutation, without its line, so that it stays the same after changes
// elsewhere.
func (m Mutation) Name() string { return fmt.Sprintf("%s %s: %s", m.File, m.Func, m.Change) }

func (m Mutation) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", m.File, m.Line, m.Func, m.Change)
}

// mutator collects the mutations of some files. Each has its number, from 1, which switches it on.
type mutator struct {
	file
	all   []Mutation
	added []insertion
	in    string // the function
	conds map[ast.Expr]bool
	drops map[ast.Stmt]bool
	stmts []ast.Stmt // the statements around the present node; coverage counts the innermost, but not every part of it
}

// mutate notes the mutations of a file.
func (m *mutator) mutate(f file) {
	m.file, m.added = f, nil
	m.conds, m.drops = map[ast.Expr]bool{}, map[ast.Stmt]bool{}
	for _, d := range f.Decls {
		if d, is := d.(*ast.FuncDecl); is && d.Body != nil {
			m.in = d.Name.Name
			if d.Recv != nil {
				m.in = strings.Trim(f.text(d.Recv.List[0].Type), "*") + "." + m.in
			}
			m.walk(d.Body)
		}
	}
}

func (m *mutator) walk(body ast.Node) {
	var closed []func() // insertions after the nodes that were entered
	ast.Inspect(body, func(n ast.Node) bool {
		if n == nil {
			last := len(closed) - 1
			closed[last]()
			closed = closed[:last]
			return true
		}
		if d, is := n.(*ast.GenDecl); is && d.Tok == token.CONST {
			return false
		}
		outer := m.stmts
		switch n := n.(type) {
		case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
		case ast.Stmt:
			m.stmts = append(m.stmts, n)
		}
		after := m.enter(n)
		closed = append(closed, func() {
			m.stmts = outer
			for _, text := range slices.Backward(after) {
				m.added = append(m.added, insertion{m.offset(n.End()), text})
			}
		})
		return true
	})
}

// enter notes the mutations of a node. It returns the text to insert after it.
func (m *mutator) enter(n ast.Node) (after []string) {
	switch n := n.(type) {
	case *ast.BlockStmt:
		m.droppable(n.List)
	case *ast.CommClause:
		m.droppable(n.Body)
	case *ast.CaseClause:
		m.droppable(n.Body)
	case *ast.IfStmt:
		m.conds[n.Cond] = true
	case *ast.ForStmt:
		m.conds[n.Cond] = true
	case *ast.SwitchStmt:
		if n.Tag == nil {
			for _, c := range n.Body.List {
				for _, e := range c.(*ast.CaseClause).List {
					m.conds[e] = true
				}
			}
		}
	}
	if e, is := n.(ast.Expr); is {
		after = m.expression(e)
	}
	if s, is := n.(ast.Stmt); is && m.drops[s] {
		number := m.add(n, "without "+m.brief(n))
		m.insert(n, "if %s != %d { ", plantedBug, number)
		after = append(after, " }")
	}
	return after
}

func (m *mutator) expression(e ast.Expr) (after []string) {
	b, binary := e.(*ast.BinaryExpr)
	if binary && (b.Op == token.LAND || b.Op == token.LOR) {
		for _, part := range []ast.Expr{b.X, b.Y} {
			same, is := part.(*ast.BinaryExpr)
			m.conds[part] = !is || same.Op != b.Op // all of a || b || c are negated once
		}
	}
	equality := binary && (b.Op == token.EQL || b.Op == token.NEQ)
	if p, is := e.(*ast.ParenExpr); is {
		m.conds[p.X] = m.conds[e]
	} else if m.conds[e] || equality {
		number := m.add(e, "not "+m.brief(e))
		m.insert(e, "((%s == %d) != (", plantedBug, number)
		after = append(after, "))")
	}
	if !binary || bounds[b.Op] == 0 {
		return after
	}
	other := bounds[b.Op]
	number := m.add(e, fmt.Sprintf("%s with %s", m.brief(e), other))
	m.insert(e, "(%s == %d && %s %s %s || %s != %d && ", plantedBug, number, m.text(b.X), other, m.text(b.Y), plantedBug, number)
	return append(after, ")")
}

// bounds has the operators whose bound moves by one.
var bounds = map[token.Token]token.Token{token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR}

// droppable notes the statements that may be left out.
func (m *mutator) droppable(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			call, is := s.X.(*ast.CallExpr)
			m.drops[s] = is && m.text(call.Fun) != "panic"
		case *ast.AssignStmt:
			m.drops[s] = s.Tok != token.DEFINE && slices.ContainsFunc(s.Lhs, func(e ast.Expr) bool { return m.text(e) != "_" })
		case *ast.DeferStmt, *ast.GoStmt, *ast.IncDecStmt:
			m.drops[s] = true
		}
	}
}

func (m *mutator) add(n ast.Node, change string) (number int) {
	line := m.set.Position(n.Pos()).Line
	at := m.set.Position(m.stmts[len(m.stmts)-1].Pos())
	m.all = append(m.all, Mutation{m.name, line, m.in, change, [2]int{at.Line, at.Column}})
	return len(m.all)
}

func (m *mutator) insert(before ast.Node, format string, args ...any) {
	m.added = append(m.added, insertion{m.offset(before.Pos()), fmt.Sprintf(format, args...)})
}

// brief returns the first line of a node's text.
func (m *mutator) brief(n ast.Node) string {
	line, _, more := strings.Cut(m.text(n), "\n")
	if more {
		line += " …"
	}
	return line
}

package main

import (
	"fmt"
	"strconv"
	"strings"

	"regent/emulators"
	"regent/test/proxy"
)

// words returns the names of the store and of its data.
func words(kind emulators.Kind) (store, unit string) {
	if kind == emulators.KindSpanner {
		return "Spanner", "rows"
	}
	return "Firestore", "documents"
}

// OperationsTable returns the cost of each operation on a store, in Markdown.
func OperationsTable(kind emulators.Kind, done []Operation) string {
	store, unit := words(kind)
	t := newTable(store, "RPCs", unit+" read", unit+" written", "which RPCs")
	for _, o := range done {
		t.add(o.Name, count(o.Cost.RPCs()), count(o.Cost.Read), count(o.Cost.Written), methods(o.Cost.Calls))
	}
	return t.String()
}

// table is a table in Markdown. The first column is text, and those whose head says so; all others
// are numbers.
type table struct{ strings.Builder }

// newTable begins with the heads of the columns.
func newTable(heads ...string) *table {
	t := new(table)
	t.add(heads...)
	lines := make([]string, len(heads))
	for i, head := range heads {
		lines[i] = "---:"
		if i == 0 || strings.HasPrefix(head, "which") || strings.HasPrefix(head, "source") || strings.HasPrefix(head, "why") {
			lines[i] = "---"
		}
	}
	t.add(lines...)
	return t
}

func (t *table) add(cells ...string) { fmt.Fprintf(t, "| %s |\n", strings.Join(cells, " | ")) }

// count returns a number with thousands separated.
func count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// methods names the RPCs.
func methods(calls proxy.Calls) string { return proxy.Calls{}.Plus(calls).String() }

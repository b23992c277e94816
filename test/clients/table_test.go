package clients_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the table in test/README.md")

const (
	readme = "../README.md"
	begins = "| case |"
	ends   = "\n\n## "
)

// The table says which client holds which case. Each "yes" is a subtest of the long form.
func TestTableOfClientsAndCasesIsInTheREADME(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(readme)
	require.NoError(t, err)
	from := bytes.Index(text, []byte(begins))
	if from < 0 {
		t.Fatalf("%s has no table that begins with %q", readme, begins)
	}
	to := from + bytes.Index(text[from:], []byte(ends))
	want := table()
	if string(text[from:to]) == want {
		return
	}
	if !*update {
		t.Fatalf("%s has another table; write it: go test ./test/clients -run Table -update\n%s", readme, want)
	}
	require.NoError(t, os.WriteFile(readme, slices.Concat(text[:from], []byte(want), text[to:]), 0o644))
}

// table is a row for each case and a column for each client, and why a case does not hold.
func table() string {
	var text strings.Builder
	var reasons []string
	text.WriteString(begins)
	for _, k := range kinds {
		fmt.Fprintf(&text, " %s |", k.name)
	}
	text.WriteString("\n|---|" + strings.Repeat("---|", len(kinds)) + "\n")
	for _, c := range trials {
		fmt.Fprintf(&text, "| %s |", c.name)
		for _, k := range kinds {
			fmt.Fprintf(&text, " %s |", cell(k.lacksFor(c), &reasons))
		}
		text.WriteString("\n")
	}
	text.WriteString("\nWhere a case does not hold:\n")
	for i, why := range reasons {
		fmt.Fprintf(&text, "\n%d. %s.", i+1, why)
	}
	return text.String()
}

// cell is "yes", or the number of the reason why not.
func cell(why string, reasons *[]string) string {
	if why == "" {
		return "yes"
	}
	i := slices.Index(*reasons, why)
	if i < 0 {
		i = len(*reasons)
		*reasons = append(*reasons, why)
	}
	return fmt.Sprintf("(%d)", i+1)
}

package telemetry_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"text/tabwriter"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership/telemetry"
)

var update = flag.Bool("update", false, "write testdata/names.golden")

func TestNamesUnitsAndLabelsAreAsTheyWere(t *testing.T) {
	t.Parallel()
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	for _, m := range telemetry.Catalogue() {
		var labels []string
		for _, l := range m.Labels {
			labels = append(labels, l.Key+"="+strings.Join(l.Values, "|"))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", m.Name, m.Kind, m.Unit, cmp.Or(strings.Join(labels, " "), "-"))
	}
	w.Flush()
	const golden = "testdata/names.golden"
	if *update {
		require.NoError(t, os.WriteFile(golden, table.Bytes(), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Empty(t, gocmp.Diff(string(want), table.String()), "a dashboard, or an alert, stands on each of these; -update accepts the difference")
}

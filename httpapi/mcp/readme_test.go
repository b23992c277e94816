package mcp_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"regent/httpapi/access/authn"
	"regent/httpapi/mcp"
)

var update = flag.Bool("update", false, "write the table of README.md anew")

const (
	beginOfTools = "<!-- table of tools -->\n"
	endOfTools   = "<!-- end of tools -->\n"
)

func TestReadmeHasTheTableOfTools(t *testing.T) {
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	head, rest, ok := strings.Cut(string(page), beginOfTools)
	_, tail, ended := strings.Cut(rest, endOfTools)
	if !ok || !ended {
		t.Fatal("README.md has no place for the table of tools")
	}
	var table strings.Builder
	table.WriteString("| tool | roles | changes | what it does |\n|---|---|---|---|\n")
	for _, row := range mcp.Rows() {
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", row.Name, strings.Join(row.Roles, ", "), row.Changes, row.Does)
	}
	want := head + beginOfTools + table.String() + endOfTools + tail
	if *update {
		require.NoError(t, os.WriteFile("README.md", []byte(want), 0o600))
		return
	}
	if diff := cmp.Diff(want, string(page)); diff != "" {
		t.Errorf("README.md is not as the tools are; run go test ./httpapi/mcp -run Readme -update (-tools +page)\n%s", diff)
	}
}

// Calls are made as they stand, except that each caller has its own handle. Answers must match the
// page, where "…" stands for anything.
func TestReadmeTranscriptIsAsItHappens(t *testing.T) {
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```transcript\n(.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("README.md has no transcript")
	}
	lines := strings.Split(strings.TrimSuffix(string(block[1]), "\n"), "\n")
	if len(lines) < 10 || len(lines)%2 != 0 {
		t.Fatalf("the transcript has %d lines; want a call and an answer each", len(lines))
	}
	bubble(t, func(t *testing.T, f *fleet) {
		door := f.door()
		models, handles := map[string]*model{}, map[string]string{}
		for pair := range slices.Chunk(lines, 2) {
			parts := strings.SplitN(pair[0], " ", 4) // the caller and two spaces
			who, tool, in := parts[0], parts[2], parts[3]
			if models[who] == nil {
				models[who] = connect(t, door, authn.Principal{Issuer: "https://issuer.test", Subject: who})
			}
			in = strings.ReplaceAll(in, "regent-lead-…", handles[who])
			got := models[who].text(tool, in)
			if handle := regexp.MustCompile(`regent-lead-[\w-]+`).FindString(got); handle != "" {
				handles[who] = handle
			}
			want := strings.Split(strings.TrimSpace(pair[1]), "…")
			for i := range want {
				want[i] = regexp.QuoteMeta(want[i])
			}
			if !regexp.MustCompile("^" + strings.Join(want, ".*") + "$").MatchString(got) {
				t.Errorf("%s\nanswers  %s\nthe page %s", pair[0], got, strings.TrimSpace(pair[1]))
			}
		}
	})
}

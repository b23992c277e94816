package style

import (
	"cmp"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// top is the folder of the project.
const top = "../.."

func TestMain(m *testing.M) {
	if flag.Parse(); testing.Short() {
		fmt.Println("make check runs these tests")
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Widths of what a person reads. Tables, code and long links in Markdown may be wider.
const (
	commentWidth = 100
	proseWidth   = 120
	tabWidth     = 4
)

func TestCommentsFitInWidth(t *testing.T) {
	t.Parallel()
	for _, name := range tracked(t, "*.go") {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, filepath.Join(top, name), nil, parser.ParseComments)
		require.NoError(t, err)
		text := readLines(t, name)
		for _, group := range file.Comments {
			for _, comment := range group.List {
				line := fset.Position(comment.Pos()).Line
				if directive(comment.Text) || !strings.HasPrefix(strings.TrimSpace(text[line-1]), "//") {
					continue
				}
				if width := width(text[line-1]); width > commentWidth {
					t.Errorf("%s:%d: a comment of %d columns; wrap it at %d", name, line, width, commentWidth)
				}
			}
		}
	}
}

func TestProseFitsInWidth(t *testing.T) {
	t.Parallel()
	fence := regexp.MustCompile("^\\s*(```|~~~)")
	for _, name := range tracked(t, "*.md") {
		code := false
		for i, line := range readLines(t, name) {
			if fence.MatchString(line) {
				code = !code
			}
			wide := code || strings.HasPrefix(strings.TrimSpace(line), "|") || strings.Contains(line, "](")
			if !wide && width(line) > proseWidth {
				t.Errorf("%s:%d: a line of %d columns; wrap it at %d", name, i+1, width(line), proseWidth)
			}
		}
	}
}

// directive reports whether a comment speaks to a tool, which reads one line.
func directive(comment string) bool {
	return regexp.MustCompile(`^//[a-z]+:[^ ]`).MatchString(comment)
}

// width is the number of columns that a line takes.
func width(line string) int {
	return utf8.RuneCountInString(strings.ReplaceAll(line, "\t", strings.Repeat(" ", tabWidth)))
}

// tracked returns the files of the repository that match the pattern, named from its top.
func tracked(t *testing.T, pattern string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "--", pattern)
	cmd.Dir = top
	out, err := cmd.Output()
	if err != nil || len(out) == 0 {
		t.Fatalf("git ls-files: %v", err)
	}
	return strings.Fields(string(out))
}

func readLines(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, name))
	require.NoError(t, err)
	return strings.Split(string(text), "\n")
}

// A link to a file of the repository names one, and a heading or an id in it.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	mark := regexp.MustCompile(`(?m)^#+ (.+)$|<a id="([^"]+)">`)
	anchors := map[string][]string{} // of the pages that are linked to
	anchorsOf := func(name string) []string {
		if anchors[name] == nil {
			for _, found := range mark.FindAllStringSubmatch(strings.Join(readLines(t, name), "\n"), -1) {
				heading := regexp.MustCompile(`[^\pL\d _-]`).ReplaceAllString(strings.ToLower(found[1]), "")
				anchors[name] = append(anchors[name], cmp.Or(found[2], strings.ReplaceAll(heading, " ", "-")))
			}
		}
		return anchors[name]
	}
	for _, page := range tracked(t, "*.md") {
		for _, found := range link.FindAllStringSubmatch(strings.Join(readLines(t, page), "\n"), -1) {
			target, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, ":") {
				continue // elsewhere
			}
			name := page
			if target != "" {
				name = filepath.Join(filepath.Dir(page), target)
			}
			if _, err := os.Stat(filepath.Join(top, name)); err != nil {
				t.Errorf("%s links to %s, which is no file", page, found[1])
			} else if anchor != "" && strings.HasSuffix(name, ".md") && !slices.Contains(anchorsOf(name), anchor) {
				t.Errorf("%s links to %s, which has no such heading", page, found[1])
			}
		}
	}
}

// What the page quotes of Regent's own words is in its source.
func TestTroubleshootingQuotesWhatRegentSays(t *testing.T) {
	t.Parallel()
	page := strings.Join(readLines(t, "cmd/regent/TROUBLESHOOTING.md"), "\n")
	prose := regexp.MustCompile("(?s)```.*?```|`[^`]*`|<a [^>]*>").ReplaceAllString(page, "")
	quotes := regexp.MustCompile(`"([^"\n]+)"`).FindAllStringSubmatch(prose, -1)
	if len(quotes) < 8 {
		t.Errorf("the page quotes %d times", len(quotes))
	}
	var source strings.Builder
	for _, name := range tracked(t, "*.go") {
		if !strings.HasSuffix(name, "_test.go") {
			source.WriteString(strings.Join(readLines(t, name), "\n"))
		}
	}
	for _, quote := range quotes {
		if !strings.Contains(source.String(), strings.TrimSuffix(quote[1], ".")) {
			t.Errorf("Regent does not say %s", quote[0])
		}
	}
}

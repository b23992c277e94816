package load

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWrapKeepsMarkdownStructure(t *testing.T) {
	t.Parallel()
	long := strings.TrimSpace(strings.Repeat("word ", 30)) // 149 columns: 24 words fit in 120
	first, second := strings.TrimSpace(strings.Repeat("word ", 24)), strings.TrimSpace(strings.Repeat("word ", 6))
	for name, c := range map[string]struct{ in, want string }{
		"paragraph":          {long, first + "\n" + second},
		"lines are joined":   {"one\ntwo\n", "one two\n"},
		"list":               {"- " + long + "\n- next\n", "- " + first[:len(first)-5] + "\n  word " + second + "\n- next\n"},
		"table":              {"| " + long + " |\n", "| " + long + " |\n"},
		"heading":            {"# " + long + "\ntext", "# " + long + "\ntext"},
		"indented code":      {"text\n\n    " + long + "\n", "text\n\n    " + long + "\n"},
		"fenced code":        {"```sh\n" + long + "\n```\ntext", "```sh\n" + long + "\n```\ntext"},
		"no accidental list": {first + " - " + second, strings.TrimSuffix(first, " word") + "\nword - " + second},
		"columns, not bytes": {strings.Repeat("é", 60) + " " + strings.Repeat("é", 59), strings.Repeat("é", 60) + " " + strings.Repeat("é", 59)},
	} {
		if diff := cmp.Diff(c.want, Wrap(c.in)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if again := Wrap(c.want); again != c.want {
			t.Errorf("%s: wrapped again it is\n%s", name, again)
		}
	}
}

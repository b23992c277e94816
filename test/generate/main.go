// Command generate writes what is computed from the code into the files that show it: the table of
// error codes in README.md. With -check it writes nothing, and fails if a file is not up to date.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"regent/leadership/wire"
)

func main() {
	check := flag.Bool("check", false, "write nothing; fail if a file is not up to date")
	root := flag.String("root", ".", "the root of the project")
	flag.Parse()
	if err := run(*root+"/README.md", *check); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(readme string, check bool) error {
	text, err := os.ReadFile(readme)
	if err != nil {
		return err
	}
	made, err := replace(text, "<!-- codes: made by go generate ./test -->\n", "<!-- end of codes -->", codes())
	if err != nil || bytes.Equal(text, made) {
		return err
	}
	if check {
		return fmt.Errorf("%s is not up to date; run: make generate", readme)
	}
	return os.WriteFile(readme, made, 0o644)
}

// replace puts made between two markers.
func replace(text []byte, begin, end, made string) ([]byte, error) {
	head, rest, ok := bytes.Cut(text, []byte(begin))
	_, tail, ok2 := bytes.Cut(rest, []byte(end))
	if !ok || !ok2 {
		return nil, errors.New("README.md has lost the markers of its table of codes")
	}
	return bytes.Join([][]byte{head, []byte(begin + made + end), tail}, nil), nil
}

// codes is the table of error codes.
func codes() string {
	var b strings.Builder
	b.WriteString("| status | code | |\n|---|---|---|\n")
	for _, m := range wire.Meanings() {
		fmt.Fprintf(&b, "| %d | `%s` | %s |\n", m.Status, m.Code, m.Advice)
	}
	return b.String()
}

package test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/test/mutants"
	"regent/test/process"
)

// readmePages are the pages with sessions, programs or policies. Each page has a server of its own.
var readmePages = []string{
	"README.md", "cmd/regent/README.md", "httpapi/README.md", "leadership/client/README.md",
	"leadership/fence/README.md", "store/README.md", "test/README.md",
}

// testedElsewhere have tests of their own: cmd/regent, httpapi/mcp, leadership/client/python/tests,
// test/dashboard, test/kubernetes, test/terraform, test/typescript, and test/load/etcd, which
// writes its page; emulators in this package.
var testedElsewhere = []string{
	"emulators/README.md", "leadership/README.md",
	"httpapi/dashboard/README.md", "httpapi/kubernetes/README.md", "httpapi/mcp/README.md",
	"leadership/client/python/README.md", "leadership/client/typescript/README.md", "terraform/README.md",
	"test/load/etcd/README.md", "test/terraform/provider/README.md",
}

func TestEveryReadmeIsTested(t *testing.T) {
	t.Parallel()
	var found []string
	err := filepath.WalkDir("..", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != ".." && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case entry.Name() == "README.md":
			found = append(found, strings.TrimPrefix(filepath.ToSlash(name), "../"))
		}
		return nil
	})
	require.NoError(t, err)
	want := slices.Sorted(slices.Values(append(slices.Clone(readmePages), testedElsewhere...)))
	if diff := cmp.Diff(want, slices.Sorted(slices.Values(found))); diff != "" {
		t.Errorf("pages (-listed +found)\n%s", diff)
	}
}

// Sessions are run as they stand, except for the server's address. What a command prints must match
// the page, where "…" stands for anything.
func TestReadmeSessionsWorkAsPrinted(t *testing.T) {
	dir := made(t) // before any session, whose leases expire
	commands := 0
	for _, page := range readmePages {
		session := readSession(t, "../"+page)
		commands += len(session)
		if len(session) > 0 {
			t.Run(page, func(t *testing.T) { runSession(t, dir, session) })
		}
	}
	if commands < 20 {
		t.Errorf("the pages have only %d commands", commands)
	}
}

// made is the folder in which make has built Regent for this process.
func made(t *testing.T) string {
	t.Helper()
	dir, err := makeOnce()
	require.NoError(t, err)
	return dir
}

var makeOnce = sync.OnceValues(func() (string, error) {
	dir, err := filepath.Abs("../.build/tests")
	build := exec.Command("make", "-C", "..", "build", "BUILD="+dir)
	build.Env = process.Environ()
	if out, failed := build.CombinedOutput(); failed != nil {
		err = fmt.Errorf("make build: %w\n%s", failed, out)
	}
	return dir, err
})

func runSession(t *testing.T, dir string, session []command) {
	s := serve(t, nil, "--store", "file:"+filepath.Join(t.TempDir(), "leases"))
	adapt := strings.NewReplacer("http://127.0.0.1:8080", s.URL, ".build/", dir+"/", "make build", "make build BUILD="+dir,
		"make run", ": TestMakeRunServes tries make run", "make test", ": which runs this test")
	play(t, session, process.Environ("REGENT_SERVER="+s.URL), adapt)
}

// play runs a session in one shell, with its addresses and folders replaced.
func play(t *testing.T, session []command, env []string, adapt *strings.Replacer) {
	t.Helper()
	var script strings.Builder
	for i, c := range session {
		fmt.Fprintf(&script, "%s\necho; echo '--- end of %d'\n", adapt.Replace(c.typed), i)
	}
	cmd := exec.CommandContext(within(t, 5*time.Minute), "bash", "-eu", "-o", "pipefail", "-c", script.String())
	cmd.Dir = ".."
	cmd.Env = env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("the session ends with %v\n%s", err, stderr.String())
	}
	compareSession(t, session, string(out))
}

// Programs are run as they stand, except for the server's address.
func TestReadmeProgramsRun(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, "--store", "memory:", "--dev")
	programs := 0
	for _, page := range readmePages {
		for _, program := range readBlocks(t, "../"+page, "go") {
			programs++
			name := filepath.Join(t.TempDir(), "main.go")
			require.NoError(t, os.WriteFile(name, []byte(strings.ReplaceAll(program, "http://127.0.0.1:8080", s.URL)), 0o600))
			cmd := exec.CommandContext(within(t, 5*time.Minute), "go", "run", name)
			cmd.Env = process.Environ()
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "page 3, written with token 1") {
				t.Errorf("%s: %v\n%s", page, err, out)
			}
		}
	}
	if programs == 0 {
		t.Error("the pages have no program")
	}
}

// readBlocks returns the code blocks of a page in one language.
func readBlocks(t *testing.T, name, language string) []string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return blocksOf(string(text), language)
}

func blocksOf(text, language string) (blocks []string) {
	for _, block := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, block[1])
	}
	return blocks
}

// command is a line that a reader types, and its output as printed on the page.
type command struct{ typed, printed string }

// readSession returns the commands of all console blocks, in their order.
func readSession(t *testing.T, name string) []command {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return commandsOf(blocksOf(string(text), "console"))
}

func commandsOf(blocks []string) (session []command) {
	for _, block := range blocks {
		for line := range strings.Lines(block) {
			if typed, ok := strings.CutPrefix(line, "$ "); ok {
				session = append(session, command{typed: strings.TrimSpace(typed)})
			} else if n := len(session); n > 0 {
				session[n-1].printed += line
			}
		}
	}
	return session
}

func compareSession(t *testing.T, session []command, out string) {
	t.Helper()
	for i, c := range session {
		printed, rest, ok := strings.Cut(out, fmt.Sprintf("--- end of %d\n", i))
		if !ok {
			t.Fatalf("%s: did not end", c.typed)
		}
		out = rest
		if c.printed != "" && !pattern(c.printed).MatchString(strings.TrimSpace(printed)) {
			t.Errorf("$ %s\nprints\n%s\nbut the page says\n%s", c.typed, printed, c.printed)
		}
	}
}

// pattern matches anything for "…", and any run of spaces for another.
func pattern(printed string) *regexp.Regexp {
	var parts []string
	for part := range strings.SplitSeq(strings.TrimSpace(printed), "…") {
		var words []string
		for word := range strings.SplitSeq(part, " ") {
			words = append(words, regexp.QuoteMeta(word))
		}
		parts = append(parts, regexp.MustCompile(`( )+`).ReplaceAllString(strings.Join(words, " "), ` +`))
	}
	return regexp.MustCompile(`(?s)^` + strings.Join(parts, ".*") + `$`)
}

func TestMakeRunServes(t *testing.T) {
	t.Parallel()
	spec := "file:" + filepath.Join(t.TempDir(), "leases")
	cmd := exec.CommandContext(within(t, 5*time.Minute), "make", "-C", "..", "run", "BUILD="+t.TempDir(), "ARGS=--listen 127.0.0.1:0 --store "+spec)
	cmd.Env = process.Environ()
	s := start(t, cmd)
	if _, err := s.client.List(t.Context(), leadership.ListRequest{}); err != nil {
		t.Errorf("list: %v", err)
	}
}

// The table of promises in README.md names tests and planted bugs that exist.
func TestThePromisesRestOnTestsThatExist(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	var tests []string
	for _, pattern := range []string{"*_test.go", "faults/*_test.go", "../leadership/instance/*_test.go", "../httpapi/*_test.go", "../cmd/regent/*_test.go", "../httpapi/kubernetes/*_test.go", "kubernetes/*_test.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, found := range regexp.MustCompile(`(?m)^func (Test\w+)`).FindAllStringSubmatch(string(text), -1) {
				tests = append(tests, found[1])
			}
		}
	}
	named := regexp.MustCompile("`(Test\\w+)(…?)`").FindAllStringSubmatch(string(page), -1)
	if len(named) < 20 {
		t.Errorf("the page names %d tests", len(named))
	}
	for _, name := range named {
		if !slices.ContainsFunc(tests, func(test string) bool { return test == name[1] || name[2] != "" && strings.HasPrefix(test, name[1]) }) {
			t.Errorf("there is no %s%s", name[1], name[2])
		}
	}
	for _, p := range mutants.Properties() {
		if !strings.Contains(string(page), fmt.Sprintf("%q", p)) {
			t.Errorf("no promise rests on the planted bugs of %q", p)
		}
	}
}

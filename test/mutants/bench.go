package mutants

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// bench builds tests with and without a bug, and runs them.
type bench struct {
	root  string
	dir   string // of what is built; removed by close
	limit time.Duration
	sound map[string]binary // the tests of each folder without a bug
	pass  map[Tests]error   // why tests prove nothing, nil if they pass without a bug; for each that was run
}

// binary is what go test has built of a package, or why it could not.
type binary struct {
	file string
	err  error
}

func newBench(ctx context.Context, root string, limit time.Duration) (*bench, error) {
	if root == "" {
		out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
		if err != nil {
			return nil, fmt.Errorf("mutants: where the module is: %w", err)
		}
		root = filepath.Dir(strings.TrimSpace(string(out)))
	}
	root, err := filepath.Abs(root) // an overlay knows no other names
	if err != nil {
		return nil, fmt.Errorf("mutants: %w", err)
	}
	dir, err := os.MkdirTemp("", "mutants-*")
	if err != nil {
		return nil, fmt.Errorf("mutants: %w", err)
	}
	return &bench{root: root, dir: dir, limit: limit, sound: make(map[string]binary), pass: make(map[Tests]error)}, nil
}

func (b *bench) close() { os.RemoveAll(b.dir) }

// try plants a bug and asks the tests.
func (b *bench) try(ctx context.Context, m Mutant, tests Tests, emulators bool) Verdict {
	v := Verdict{Mutant: m, Tests: tests}
	if m.Emulators && !emulators {
		v.Outcome, v.Why = NotTried, "its tests need the emulators"
		return v
	}
	overlay, err := b.plant(m)
	if err == nil {
		err = b.passes(ctx, tests, m.Emulators)
	}
	switch {
	case errors.Is(err, errSkipped):
		v.Outcome, v.Why = NotTried, err.Error()
		return v
	case err != nil:
		v.Outcome, v.Why = Broken, err.Error()
		return v
	}
	began := time.Now()
	v.Outcome, v.Why = b.ask(ctx, tests, overlay, m.Emulators)
	v.Took = time.Since(began)
	return v
}

// plant writes the changed file and an overlay that shows it, and returns the overlay's name.
func (b *bench) plant(m Mutant) (overlay string, err error) {
	source, err := m.apply(b.root)
	if err != nil {
		return "", err
	}
	changed, overlay := filepath.Join(b.dir, "changed.go"), filepath.Join(b.dir, "overlay.json")
	text, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(b.root, m.patch.file): changed}})
	if err != nil {
		return "", err
	}
	return overlay, errors.Join(os.WriteFile(changed, source, 0o600), os.WriteFile(overlay, text, 0o600))
}

// ask builds the tests with the bug, and runs them. It returns the outcome, and why.
func (b *bench) ask(ctx context.Context, tests Tests, overlay string, emulators bool) (Outcome, string) {
	file := filepath.Join(b.dir, "mutant.test")
	if err := b.build(ctx, tests.Dir, file, overlay); err != nil {
		return Broken, err.Error()
	}
	switch failed, passed, err := b.run(ctx, tests, file, overlay, emulators); {
	case err != nil:
		return Broken, err.Error()
	case failed == "":
		return Survived, "passed though the bug was there: " + strings.Join(passed, ", ")
	default:
		return Caught, failed
	}
}

// passes says whether the tests pass on the sound code.
func (b *bench) passes(ctx context.Context, tests Tests, emulators bool) error {
	err, known := b.pass[tests]
	if known {
		return err
	}
	built, known := b.sound[tests.Dir]
	if !known {
		built.file = filepath.Join(b.dir, strings.ReplaceAll(tests.Dir, "/", "-")+".test")
		built.err = b.build(ctx, tests.Dir, built.file, "")
		b.sound[tests.Dir] = built
	}
	if err = built.err; err == nil {
		var failed string
		if failed, _, err = b.run(ctx, tests, built.file, "", emulators); failed != "" {
			err = fmt.Errorf("without the bug its tests fail too: %s", failed)
		}
	}
	b.pass[tests] = err
	return err
}

// build makes the tests of a folder. Without vet: what it finds is not what is asked for here.
func (b *bench) build(ctx context.Context, dir, file, overlay string) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-o", file, ".")
	cmd.Dir, cmd.Env = filepath.Join(b.root, dir), environ(overlay, false)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("the tests of %s do not build: %w\n%s", dir, err, bytes.TrimSpace(out))
	}
	return nil
}

// environ is that of this process, but for the overlay, which also holds for what tests build by
// themselves.
func environ(overlay string, emulators bool) []string {
	env := os.Environ()
	if overlay != "" {
		env = append(env, "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" '-overlay="+overlay+"'"))
	}
	if emulators {
		env = append(env, "REGENT_REQUIRE_EMULATORS=1") // a test that is skipped would catch nothing
	}
	return env
}

// run runs tests that were built. It returns the first failure, "" if there is none, and the tests
// that passed. The error is for tests that say nothing: there are none, or they ended neither well
// nor with a failure.
func (b *bench) run(ctx context.Context, tests Tests, file, overlay string, emulators bool) (failed string, passed []string, err error) {
	output, err := os.Create(filepath.Join(b.dir, "output")) // a pipe would be kept open by processes that the tests leave behind
	if err != nil {
		return "", nil, err
	}
	defer output.Close()
	cmd := exec.CommandContext(ctx, file, "-test.run="+tests.pattern(), "-test.v", "-test.failfast", "-test.timeout="+b.limit.String())
	cmd.Dir, cmd.Env = filepath.Join(b.root, tests.Dir), environ(overlay, emulators)
	cmd.Stdout, cmd.Stderr = output, output
	ended := cmd.Run()
	said, err := os.ReadFile(output.Name())
	if err != nil {
		return "", nil, err
	}
	failed, passed = results(string(said))
	if ended == nil {
		failed = "" // what looks like a failure was only printed
	}
	switch {
	case bytes.Contains(said, []byte("testing: warning: no tests to run")):
		return "", nil, fmt.Errorf("there are no such tests in %s", tests.Dir)
	case ended == nil && passed == nil:
		return "", nil, fmt.Errorf("%w: %s", errSkipped, tests)
	case ended != nil && failed == "":
		return "", nil, fmt.Errorf("the tests of %s ended without a word: %w", tests, ended)
	}
	return failed, passed, nil
}

// errSkipped is the error of tests that this machine cannot run.
var errSkipped = errors.New("the tests are skipped")

// results reads what verbose tests have printed: the first failure, which is the name of the test
// and the first and the last line that it had logged, and the tests that passed, without their
// subtests.
func results(output string) (failed string, passed []string) {
	logged := map[string][]string{} // the first and the last line of each test
	running := ""
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\n")
		text := strings.TrimSpace(line)
		fields := strings.Fields(text)
		switch {
		case len(fields) == 3 && fields[0] == "===":
			running = fields[2]
		case strings.HasPrefix(line, "--- PASS: "):
			passed = append(passed, strings.TrimPrefix(line, "--- PASS: "))
		case strings.HasPrefix(text, "--- FAIL: ") && (failed == "" || subtest(fields[2], failed) && logged[fields[2]] != nil):
			failed = strings.TrimPrefix(text, "--- FAIL: ")
			if said := logged[fields[2]]; len(said) > 0 {
				failed += ": " + strings.Join(said, " … ")
			}
		case (strings.HasPrefix(text, "panic: ") || strings.HasPrefix(text, "fatal error: ")) && failed == "":
			failed = running + ": " + text
		case sourceLine.MatchString(text):
			text = text[:min(len(text), longestLine)]
			said := logged[running]
			if logged[running] = append(said[:min(len(said), 1)], text); failed != "" && !strings.Contains(failed, ": ") {
				failed += ": " + text // a test in parallel says it afterwards
			}
		}
	}
	return failed, passed
}

// subtest reports whether the name is that of a subtest of the test that failed, which says less
// than it.
func subtest(name, failed string) bool {
	parent, _, _ := strings.Cut(failed, " ")
	return strings.HasPrefix(name, parent+"/")
}

// sourceLine is how a line of a test's log begins.
var sourceLine = regexp.MustCompile(`^\S+\.go:\d+: `)

const longestLine = 300 // bytes of it that a verdict has

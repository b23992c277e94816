package mutants

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// bench builds the tests of each folder once, with all bugs that a switch can turn on, and runs
// them with one of these or none.
type bench struct {
	root  string
	dir   string // of the built binaries; removed by close
	limit time.Duration

	bugs    []Mutant         // the bugs that are built in
	without map[string]error // why a bug is not built in, by its name
	list    string           // the overlay's list of files
	built   map[string]build // the tests of each folder
	sound   map[Tests]sound  // the results of tests without a bug
}

// build is the test binary of a package, or the error of its build.
type build struct {
	file string
	list string // of the overlay
	err  error
}

// sound is a run of tests without a bug: nil if they pass or else why they prove nothing, and how
// long they took.
type sound struct {
	err  error
	took time.Duration
}

func newBench(ctx context.Context, root string, limit time.Duration, bugs []Mutant) (*bench, error) {
	if root == "" {
		out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
		if err != nil {
			return nil, fmt.Errorf("mutants: where the module is: %w", err)
		}
		root = filepath.Dir(strings.TrimSpace(string(out)))
	}
	root, err := filepath.Abs(root) // an overlay needs absolute names
	if err != nil {
		return nil, fmt.Errorf("mutants: %w", err)
	}
	dir, err := os.MkdirTemp("", "mutants-*")
	if err != nil {
		return nil, fmt.Errorf("mutants: %w", err)
	}
	b := &bench{root: root, dir: dir, limit: limit, bugs: bugs, without: map[string]error{}, built: map[string]build{}, sound: map[Tests]sound{}}
	if err := b.plant(); err != nil {
		b.close()
		return nil, fmt.Errorf("mutants: %w", err)
	}
	return b, nil
}

func (b *bench) close() { os.RemoveAll(b.dir) }

// plant writes the overlay with all bugs that can be built in.
func (b *bench) plant() error {
	bugs := slices.DeleteFunc(slices.Clone(b.bugs), func(m Mutant) bool { return b.without[m.Name] != nil })
	o, without, err := planted(b.root, bugs)
	if err != nil {
		return err
	}
	maps.Copy(b.without, without)
	b.list, err = o.write(b.root, b.dir)
	return err
}

// try switches a bug on and runs the tests: first the named ones and, if these pass or are gone,
// all of the package.
func (b *bench) try(ctx context.Context, m Mutant, tests Tests, emulators bool) Verdict {
	v := Verdict{Mutant: m, Tests: tests}
	if m.Emulators && !emulators {
		v.Outcome, v.Why = NotTried, "its tests need the emulators"
		return v
	}
	began := time.Now()
	v.Outcome, v.Why = b.ask(ctx, m, tests)
	if v.Outcome == NotTried { // there may be only a long form
		tests.long, v.Tests.long = true, true
		v.Outcome, v.Why = b.ask(ctx, m, tests)
	}
	if tests.Names != "" && (v.Outcome == Survived || v.Outcome == Broken && b.sound[tests].err == errNoTests) {
		v.Tests.Names = ""
		v.Outcome, v.Why = b.ask(ctx, m, v.Tests)
	}
	v.Took = time.Since(began)
	return v
}

// ask runs the tests with the bug, after they have passed without it. It returns the outcome and
// its reason.
func (b *bench) ask(ctx context.Context, m Mutant, tests Tests) (Outcome, string) {
	all := b.tests(ctx, tests.Dir)
	with, err := all, b.without[m.Name]
	if errors.Is(err, errOwnBuild) {
		with = b.alone(ctx, m, tests.Dir)
		err = with.err
	}
	var sound sound
	if err = cmp.Or(err, all.err); err == nil {
		sound = b.passes(ctx, tests, all, m.Emulators)
		err = sound.err
	}
	var failed string
	var passed []string
	if err == nil {
		failed, passed, err = b.run(ctx, tests, with, m.Name, m.Emulators, max(b.limit, slower*sound.took))
	}
	switch {
	case errors.Is(err, errSkipped):
		return NotTried, err.Error()
	case err != nil:
		return Broken, err.Error()
	case failed == "" && len(passed) > 3:
		return Survived, fmt.Sprintf("passed though the bug was there: %s, and %d more", passed[0], len(passed)-1)
	case failed == "":
		return Survived, "passed though the bug was there: " + strings.Join(passed, ", ")
	}
	return Caught, failed
}

const (
	slower  = 5                // how many times longer tests may take with a bug than without it
	longest = 20 * time.Minute // of tests without a bug, on a busy machine
)

// passes returns the result of the tests without a bug.
func (b *bench) passes(ctx context.Context, tests Tests, built build, emulators bool) sound {
	if _, known := b.sound[tests]; !known {
		began := time.Now()
		failed, _, err := b.run(ctx, tests, built, "", emulators, max(slower*b.limit, longest))
		if failed != "" {
			err = fmt.Errorf("without the bug its tests fail too: %s", failed)
		}
		b.sound[tests] = sound{err, time.Since(began)}
	}
	return b.sound[tests]
}

// tests builds the tests of a folder with all bugs in them. Those that do not compile are left out.
func (b *bench) tests(ctx context.Context, dir string) build {
	for b.built[dir] == (build{}) {
		file := filepath.Join(b.dir, strings.ReplaceAll(dir, "/", "-")+".test")
		err := b.build(ctx, dir, file, b.list)
		if !b.blame(err) {
			b.built[dir] = build{file, b.list, err}
		} else if err := b.plant(); err != nil {
			b.built[dir] = build{err: err}
		}
	}
	return b.built[dir]
}

// blame notes the bugs that the error of a build names, and reports whether there are any.
func (b *bench) blame(err error) (any bool) {
	if err == nil {
		return false
	}
	for _, found := range patchLine.FindAllStringSubmatch(err.Error(), -1) {
		if name := found[1]; b.without[name] == nil {
			b.without[name], any = fmt.Errorf("it does not build: %s", found[0]), true
		}
	}
	return any
}

// patchLine is an error of the compiler in a bug that is built in.
var patchLine = regexp.MustCompile(`([^/\n]+)\.patch:\d+:.*`)

// alone builds the tests of a folder with one bug and no switch.
func (b *bench) alone(ctx context.Context, m Mutant, dir string) (built build) {
	changed, err := m.apply(b.root)
	if err != nil {
		return build{err: err}
	}
	own := filepath.Join(b.dir, m.Name)
	if err := os.MkdirAll(own, 0o700); err != nil {
		return build{err: err}
	}
	built = build{file: filepath.Join(own, "mutant.test")}
	if built.list, built.err = (overlay{m.patch.file: changed}).write(b.root, own); built.err == nil {
		built.err = b.build(ctx, dir, built.file, built.list)
	}
	return built
}

// build builds the tests of a folder, without vet, whose findings do not matter here.
func (b *bench) build(ctx context.Context, dir, file, list string) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-o", file, ".")
	cmd.Dir, cmd.Env = filepath.Join(b.root, dir), environ(list, "", false)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("the tests of %s do not build: %w\n%s", dir, err, bytes.TrimSpace(out))
	}
	return nil
}

// environ returns the environment of this process with a bug switched on. The overlay also applies
// to builds that tests start.
func environ(list, bug string, emulators bool) []string {
	env := append(os.Environ(), plantedBug+"="+bug, "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" '-overlay="+list+"'"))
	if emulators {
		env = append(env, "REGENT_REQUIRE_EMULATORS=1") // a test that is skipped would catch nothing
	}
	return env
}

// run runs tests that were built, with a bug or "" for none. It returns the first failure, "" if
// there is none, and the tests that passed. The error is for runs without a result: there are no
// tests, or they neither passed nor failed.
func (b *bench) run(ctx context.Context, tests Tests, built build, bug string, emulators bool, limit time.Duration) (failed string, passed []string, err error) {
	output, err := os.Create(filepath.Join(b.dir, "output")) // processes that the tests leave behind would keep a pipe open
	if err != nil {
		return "", nil, err
	}
	defer output.Close()
	cmd := exec.CommandContext(ctx, built.file, "-test.run="+tests.pattern(), "-test.short="+strconv.FormatBool(!tests.long), "-test.v", "-test.failfast", "-test.timeout="+limit.String())
	cmd.Dir, cmd.Env = filepath.Join(b.root, tests.Dir), environ(built.list, bug, emulators)
	cmd.Stdout, cmd.Stderr = output, output
	ended := cmd.Run()
	said, err := os.ReadFile(output.Name())
	if err != nil {
		return "", nil, err
	}
	failed, passed = results(string(said))
	if ended == nil {
		failed = "" // the text that looks like a failure was only printed
	}
	switch {
	case bytes.Contains(said, []byte("testing: warning: no tests to run")):
		return "", nil, errNoTests
	case ended == nil && passed == nil:
		return "", nil, fmt.Errorf("%w: %s", errSkipped, tests)
	case ended != nil && failed == "":
		return "", nil, fmt.Errorf("the tests of %s ended without a word: %w", tests, ended)
	}
	return failed, passed, nil
}

var (
	errSkipped = errors.New("the tests are skipped") // this machine cannot run them
	errNoTests = errors.New("there are no such tests")
)

// results reads the output of verbose tests: the first failure, with the name of the test and the
// first and last line of its log, and the tests that passed, without their subtests.
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
				failed += ": " + text // a parallel test logs it after the failure
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

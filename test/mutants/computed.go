package mutants

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"regent/test/load"
)

// Survey selects the package to mutate, and the tests to run.
type Survey struct {
	Root     string                            // of the module; "" for that of the working directory
	Dir      string                            // of the package to mutate
	By       []string                          // the folders of the packages whose short tests are run, one after the other
	Only     func(m Mutation, number int) bool // selects mutations to try; nil for all
	Together int                               // how many mutations are tried at the same time
	Heard    func(m Mutation, killed string)
}

// Surveyed is the result of a survey.
type Surveyed struct {
	Mutations int
	Survivors []Mutation // mutations with which no test has failed
	Explained int        // number of these that are listed as equivalent
}

// equivalents lists mutations that no test can kill, with the reason: a line with the name, and
// indented lines.
//
//go:embed equivalents.txt
var equivalents string

// explained reports whether a mutation is listed as equivalent.
func (m Mutation) explained() bool {
	return strings.Contains("\n"+equivalents, "\n"+m.Name()+"\n\t")
}

// Run tries all mutations of a package. They are in one binary of each package that tests them, and
// a number switches one on. The tests that execute the mutated code are run, the quickest first,
// until one fails or takes ten times as long as without the mutation.
func (s Survey) Run(ctx context.Context) (Surveyed, error) {
	b, err := newBench(ctx, s.Root, 0, nil)
	if err != nil {
		return Surveyed{}, err
	}
	defer b.close()
	all, err := b.mutate(s.Dir)
	if err != nil {
		return Surveyed{}, fmt.Errorf("mutants: %w", err)
	}
	var asked []examiner
	for _, dir := range s.By {
		e, err := b.examiner(ctx, dir, s.Dir, s.Together)
		if err != nil {
			return Surveyed{}, fmt.Errorf("mutants: %w", err)
		}
		asked = append(asked, e)
	}
	var mutex sync.Mutex
	var result Surveyed
	err = load.Each(len(all), s.Together, func(i int) error {
		m, killed := all[i], ""
		if ctx.Err() != nil || s.Only != nil && !s.Only(m, i) {
			return ctx.Err()
		}
		for _, e := range asked {
			if killed = e.ask(ctx, b, m, i+1); killed != "" {
				break
			}
		}
		mutex.Lock()
		defer mutex.Unlock()
		result.Mutations++
		if killed == "" {
			result.Survivors = append(result.Survivors, m)
			if m.explained() {
				result.Explained++
			}
		}
		if s.Heard != nil && ctx.Err() == nil {
			s.Heard(m, killed)
		}
		return ctx.Err()
	})
	return result, err
}

// mutate writes an overlay with all mutations of the package in the folder.
func (b *bench) mutate(dir string) ([]Mutation, error) {
	names, err := filepath.Glob(filepath.Join(b.root, dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var m mutator
	added := map[string][]insertion{}
	for _, path := range names {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		name, err := filepath.Rel(b.root, path)
		if err != nil {
			return nil, err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		f, err := parse(filepath.ToSlash(name), source)
		if err != nil {
			return nil, err
		}
		m.mutate(f)
		added[f.name] = m.added
	}
	o, err := inserted(b.root, added, "int", `func() int { n, _ := strconv.Atoi(os.Getenv("`+plantedBug+`")); return n }()`, "os", "strconv")
	if err != nil {
		return nil, err
	}
	b.list, err = o.write(b.root, b.dir)
	return m.all, err
}

// examiner is the tests of one package.
type examiner struct {
	dir, file string
	tests     []test // the quickest first
}

// test is one test, with its result without a mutation.
type test struct {
	name   string
	took   time.Duration
	passed []block
}

// block is a block of a file, by lines and columns, that a test executes.
type block struct {
	file     string
	from, to [2]int
}

func (b block) has(m Mutation) bool {
	return b.file == m.File && slices.Compare(b.from[:], m.at[:]) <= 0 && slices.Compare(m.at[:], b.to[:]) < 0
}

// examiner builds the tests of a folder, and runs each of them to measure how long it takes and
// which blocks of the mutated package it executes.
func (b *bench) examiner(ctx context.Context, dir, mutated string, some int) (e examiner, err error) {
	base := filepath.Join(b.dir, strings.ReplaceAll(dir, "/", "-"))
	e = examiner{dir: dir, file: base + ".test"}
	if err := b.build(ctx, dir, e.file, b.list); err != nil {
		return e, err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-covermode=set", "-coverpkg=./"+mutated, "-o", base+".cover", "./"+dir)
	cmd.Dir = b.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return e, fmt.Errorf("%w\n%s", err, out)
	}
	cmd = exec.CommandContext(ctx, e.file, "-test.list=^(Test|Fuzz|Example)")
	cmd.Dir = filepath.Join(b.root, dir)
	list, err := cmd.Output()
	if err != nil {
		return e, err
	}
	var mutex sync.Mutex
	names := strings.Fields(string(list))
	err = load.Each(len(names), some, func(i int) error {
		name := names[i]
		profile := filepath.Join(b.dir, name+".profile")
		cmd := exec.CommandContext(ctx, base+".cover", "-test.short", "-test.run=^"+name+"$", "-test.coverprofile="+profile)
		cmd.Dir = filepath.Join(b.root, dir)
		began := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s %s fails without a mutation: %w\n%s", dir, name, err, out)
		}
		t := test{name: name, took: time.Since(began)}
		text, err := os.ReadFile(profile)
		if err != nil {
			return err
		}
		t.passed = covered(text, mutated)
		mutex.Lock()
		defer mutex.Unlock()
		e.tests = append(e.tests, t)
		return nil
	})
	slices.SortFunc(e.tests, func(a, b test) int { return cmp.Compare(a.took, b.took) })
	return e, err
}

// covered returns the blocks that a profile counts.
func covered(profile []byte, dir string) (blocks []block) {
	for lines := bufio.NewScanner(bytes.NewReader(profile)); lines.Scan(); {
		m := profileLine.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		n := func(i int) int { n, _ := strconv.Atoi(m[i]); return n }
		blocks = append(blocks, block{dir + "/" + m[1], [2]int{n(2), n(3)}, [2]int{n(4), n(5)}})
	}
	return blocks
}

// profileLine is a line of a coverage profile whose count is not 0.
var profileLine = regexp.MustCompile(`/([^/]+):(\d+)\.(\d+),(\d+)\.(\d+) \d+ [1-9]\d*$`)

// ask runs, with a mutation, the tests that execute it. It returns the end of their output if one
// fails.
func (e examiner) ask(ctx context.Context, b *bench, m Mutation, number int) (killed string) {
	var names []string
	var sum, asked time.Duration
	for i, t := range e.tests {
		if slices.ContainsFunc(t.passed, func(b block) bool { return b.has(m) }) {
			names, sum = append(names, t.name), sum+t.took
		}
		// Each process runs tests for about as long as all processes before it.
		if last := i == len(e.tests)-1; names != nil && (last || sum > max(few, 2*asked)) {
			if killed = e.run(ctx, b, names, number, 10*(sum-asked)+10*time.Second); killed != "" {
				return killed
			}
			names, asked = nil, sum
		}
	}
	return ""
}

// few is how long the tests of the first process take.
const few = time.Second / 4

func (e examiner) run(ctx context.Context, b *bench, names []string, number int, limit time.Duration) (killed string) {
	dir, err := os.MkdirTemp(b.dir, "")
	if err != nil {
		return ""
	}
	defer os.RemoveAll(dir)
	const shell = `ulimit -v 8388608; exec "$@"` // a loop without an end may ask for all memory
	cmd := exec.CommandContext(ctx, "sh", "-c", shell, "sh", e.file, "-test.short", "-test.failfast", "-test.timeout="+limit.String(),
		"-test.run=^("+strings.Join(names, "|")+")$")
	cmd.Dir = filepath.Join(b.root, e.dir)
	cmd.Env = append(environ(b.list, strconv.Itoa(number), false), "TMPDIR="+dir)
	out, err := cmd.Output()
	if failed := (*exec.ExitError)(nil); !errors.As(err, &failed) {
		return ""
	}
	return cmp.Or(firstFailure.FindString(string(out)), "it ends")
}

var firstFailure = regexp.MustCompile(`(?m)^(--- FAIL: \S+|panic: .*)`)

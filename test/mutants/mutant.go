package mutants

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Mutant is one planted bug.
type Mutant struct {
	Name     string   // of its patch, without the folder and ".patch"
	Wrong    string   // the fault, in a sentence
	Property Property // the property that it breaks

	// By are the tests that must catch it: each of them by itself. The first are the cheapest.
	By []Tests
	// Quick reports whether it belongs to the quick set: only the first of By is tried, and takes a
	// second or two after its build.
	Quick bool
	// Emulators reports whether its tests need the emulators.
	Emulators bool

	patch patch
}

// Property is a promise of Regent, or a part of one, that planted bugs break.
type Property string

// Properties returns all of them. Each has a planted bug.
func Properties() []Property {
	return []Property{
		"one lease at a time",
		"tokens only rise",
		"only the key owns the lease",
		"a late renewal counts for nothing",
		"a leader stops in time",
		"the lock delay is kept",
		"the fence holds",
		"asking again is safe",
		"an effect is begun by one leader, and is done once",
		"a proposal is decided once",
		"unknown is said",
		"what was acknowledged stays",
		"a damaged record grants nothing",
		"every change is on record",
		"every change is announced",
		"a stream has no gaps",
		"a cached read is bounded",
		"a disconnected waiter is never granted",
		"the line moves on",
		"waiting costs nothing",
		"a lease ends at its latest end",
		"a program decides only on what it understands",
		"an operator's order stands",
		"no configuration is undone unseen",
		"every call passes every gate",
		"one tenant cannot harm another",
		"the best candidate leads",
		"a quorum is asked for",
		"a term is handed over to one successor",
		"a lease ends with the one that it stands on",
		"what is delegated is limited",
		"a log is its leader's alone",
	}
}

// Tests are those of one package, in their short form if they have one.
type Tests struct {
	Dir string // of the package, from the root of the module
	// Names are tests to try before all others, separated by "|", where the whole package is slow.
	// They may be gone.
	Names string
	long  bool // the short form is skipped
}

// pattern returns the value of -test.run for the tests.
func (t Tests) pattern() string {
	if t.Names == "" {
		return ""
	}
	return "^(" + t.Names + ")$"
}

func (t Tests) String() string { return strings.TrimSpace(t.Dir + " " + t.Names) }

//go:embed patches/*.patch
var patches embed.FS

// All returns every planted bug, in the order of the names.
func All() ([]Mutant, error) {
	entries, err := patches.ReadDir("patches")
	if err != nil {
		return nil, err
	}
	var all []Mutant
	for _, e := range entries {
		text, err := patches.ReadFile("patches/" + e.Name())
		if err != nil {
			return nil, err
		}
		m, err := Parse(strings.TrimSuffix(e.Name(), ".patch"), string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// Parse reads a patch file: a line that says what is wrong, an empty line, members as "Name: value"
// (Property, Like, Caught-by as often as needed, and "Set: quick" or "Set: emulators"), and a
// unified diff of one file.
func Parse(name, text string) (Mutant, error) {
	m := Mutant{Name: name}
	head, diff, _ := strings.Cut(text, "\n--- ")
	lines := strings.Split(head, "\n")
	m.Wrong = lines[0]
	for _, line := range lines[1:] {
		if line == "" {
			continue
		}
		if err := m.member(line); err != nil {
			return m, fmt.Errorf("%s: %w", name, err)
		}
	}
	var err error
	if m.patch, err = parsePatch("--- " + diff); err != nil {
		return m, fmt.Errorf("%s: %w", name, err)
	}
	if m.Wrong == "" || m.Property == "" || len(m.By) == 0 {
		return m, fmt.Errorf("%s: the first line, Property or Caught-by is missing", name)
	}
	return m, nil
}

func (m *Mutant) member(line string) error {
	key, value, _ := strings.Cut(line, ": ")
	switch key {
	case "Property":
		m.Property = Property(value)
		if !slices.Contains(Properties(), m.Property) {
			return fmt.Errorf("there is no property %q", value)
		}
	case "Like": // the systems that had the bug
	case "Caught-by":
		dir, names, _ := strings.Cut(value, " ")
		m.By = append(m.By, Tests{Dir: dir, Names: names})
	case "Set":
		m.Quick, m.Emulators = value == "quick", value == "emulators"
		if !m.Quick && !m.Emulators {
			return fmt.Errorf("there is no set %q", value)
		}
	default:
		return fmt.Errorf("%q is no member of a patch's head", line)
	}
	return nil
}

// apply returns the file with the bug in it.
func (m Mutant) apply(root string) ([]byte, error) {
	source, err := os.ReadFile(filepath.Join(root, m.patch.file))
	if err != nil {
		return nil, err
	}
	changed, err := m.patch.apply(string(source))
	if err != nil {
		return nil, fmt.Errorf("%w; see go run ./test/mutants/refresh", err)
	}
	return []byte(changed), nil
}

package mutants

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// A bug that does not build proves nothing, and only a run of all of them would tell.
func TestPlantedBugsBuild(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the whole module; make check does")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	bugs, err := All()
	if err != nil {
		t.Fatal(err)
	}
	o, without, err := planted(root, bugs)
	if err != nil {
		t.Fatal(err)
	}
	build := func(name, packages string, o overlay) {
		list, err := o.write(root, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "go", "build", "-gcflags=-e", "-overlay="+list, packages)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	build("all bugs that have a switch", "./...", o)
	for _, m := range bugs {
		if without[m.Name] == nil {
			continue
		}
		changed, err := m.apply(root)
		if err != nil {
			t.Errorf("%s: %v", m.Name, err)
			continue
		}
		build(m.Name, "./"+filepath.Dir(m.patch.file), overlay{m.patch.file: changed})
	}
}

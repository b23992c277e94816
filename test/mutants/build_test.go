package mutants

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A bug that does not build proves nothing, and only a run of all of them would tell.
func TestPlantedBugsBuild(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the whole module; make check does")
	}
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	bugs, err := All()
	require.NoError(t, err)
	o, without, err := planted(root, bugs)
	require.NoError(t, err)
	build := func(name, packages string, o overlay) {
		list, err := o.write(root, t.TempDir())
		require.NoError(t, err)
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

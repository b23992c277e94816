package clients_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"regent/test/machine"
)

// together is how many subtests run side by side. They wait far more than they compute.
const together = 24

func TestMain(m *testing.M) {
	machine.MainTogether(m, together, func() {
		if dir, err := binaries(); err == nil {
			os.RemoveAll(dir)
		}
	})
}

// Programs, each built once for all tests.
var (
	regent = built("regent", "regent/cmd/regent")
	driver = built("driver", "regent/test/clients/drivers/go")
)

var binaries = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "regent-clients-*") })

func built(name, pkg string, flags ...string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		dir, err := binaries()
		if err != nil {
			return "", err
		}
		path := filepath.Join(dir, name)
		return path, run("go", slices.Concat([]string{"build", "-o", path}, flags, []string{pkg})...)
	})
}

func run(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

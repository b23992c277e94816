package clients_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"regent/test/machine"
)

// together is how many subtests run side by side. They wait far more than they compute.
const together = 32

func TestMain(m *testing.M) {
	machine.MainTogether(m, together, func() {
		if dir, err := binaries(); err == nil {
			os.RemoveAll(dir)
		}
	})
}

// Programs, each built once for all tests.
var (
	regent = built("regent/cmd/regent")
	driver = built("regent/test/clients/drivers/go")
)

var binaries = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "regent-clients-*") })

func built(pkg string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		dir, err := binaries()
		if err != nil {
			return "", err
		}
		path := filepath.Join(dir, filepath.Base(pkg))
		cmd := exec.Command("go", "build", "-o", path, pkg)
		cmd.Stderr = os.Stderr
		return path, cmd.Run()
	})
}

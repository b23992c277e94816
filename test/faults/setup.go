package faults

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"

	"regent/emulators"
	proc "regent/test/process"
)

// SetupConfig says where the emulators are: host:port, or "" to take them from the environment.
type SetupConfig struct {
	Firestore, Spanner, PubSub string
}

// Setup has what runs share: built programs and emulators. Several runs may use it at the same
// time.
type Setup struct {
	SetupConfig
	Shifts bool // clocks: unshare -T works
	paths  map[program]string
}

// NewSetup builds the programs, which takes a minute where nothing is built yet.
func NewSetup(c SetupConfig) (*Setup, error) {
	shifts := exec.Command("unshare", "-T", "--boottime", "1", "true").Run() == nil
	r := (&Setup{Shifts: shifts, paths: map[program]string{}}).With(c)
	for _, p := range []program{regent, mortal, agent, lifespan} {
		path, err := p.Build()
		if err != nil {
			return nil, fmt.Errorf("faults: %w", err)
		}
		r.paths[p] = path
	}
	return r, nil
}

// With returns the same setup with other emulators.
func (r *Setup) With(c SetupConfig) *Setup {
	other := *r
	other.SetupConfig = SetupConfig{
		Firestore: cmp.Or(c.Firestore, os.Getenv(emulators.KindFirestore.Variable())),
		Spanner:   cmp.Or(c.Spanner, os.Getenv(emulators.KindSpanner.Variable())),
		PubSub:    cmp.Or(c.PubSub, os.Getenv(emulators.KindPubSub.Variable())),
	}
	return &other
}

type program = proc.Program

var (
	regent   = proc.Regent
	mortal   = proc.Mortal
	agent    = program{Package: "regent/test/faults/agent"}
	lifespan = program{Package: "regent/test/process/lifespan"}
)

// command returns a command of a built program, with the environment of a program under test.
func (r *Setup) command(p program, env []string, args ...string) *exec.Cmd {
	cmd := exec.Command(r.paths[p], args...)
	cmd.Env = proc.Environ(env...)
	return cmd
}

// shifted is the command in a time namespace of its own.
func shifted(cmd *exec.Cmd, seconds int64) *exec.Cmd {
	offset := fmt.Sprint(seconds)
	in := exec.Command("unshare", append([]string{"-T", "--monotonic", offset, "--boottime", offset, cmd.Path}, cmd.Args[1:]...)...)
	in.Env = cmd.Env
	return in
}

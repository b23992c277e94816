package faults

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"slices"

	"regent/emulators"
	proc "regent/test/process"
)

// SetupConfig says where the emulators are: host:port, or "" to take them from the environment.
type SetupConfig struct {
	Firestore, Spanner, PubSub string
	// Overlay is a file for go build -overlay, to try a server that has a bug; "" for none.
	Overlay string
}

// Setup has what runs share: built programs and emulators. Several runs may use it at the same
// time.
type Setup struct {
	SetupConfig
	Can   Abilities
	paths map[program]string
}

// NewSetup builds the programs, which takes a minute where nothing is built yet.
func NewSetup(c SetupConfig) (*Setup, error) {
	r := (&Setup{Can: abilities(), paths: map[program]string{}}).With(c)
	for _, p := range []program{regent, mortal, agent, lifespan} {
		with := p
		if c.Overlay != "" {
			with.Flags += " -overlay " + c.Overlay
		}
		path, err := with.Build()
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
		Overlay:   c.Overlay,
		Firestore: cmp.Or(c.Firestore, os.Getenv(emulators.KindFirestore.Variable())),
		Spanner:   cmp.Or(c.Spanner, os.Getenv(emulators.KindSpanner.Variable())),
		PubSub:    cmp.Or(c.PubSub, os.Getenv(emulators.KindPubSub.Variable())),
	}
	other.Can.Freezable = nil
	for what, address := range map[string]string{string(Firestore): other.Firestore, string(Spanner): other.Spanner, "topic": other.PubSub} {
		if address != "" && other.frozen(address) > 0 {
			other.Can.Freezable = append(other.Can.Freezable, what)
		}
	}
	slices.Sort(other.Can.Freezable)
	return &other
}

type program = proc.Program

var (
	regent   = proc.Regent
	mortal   = proc.Mortal
	agent    = program{Package: "regent/test/faults/agent"}
	lifespan = program{Package: "regent/test/process/lifespan"}
)

// LeftOut returns a sentence for each kind of fault that is not tried on this machine.
func (r *Setup) LeftOut() []string { return r.Can.leftOut() }

// frozen is the process of an emulator, if this process has started it and may stop it; else 0.
func (r *Setup) frozen(address string) int {
	if pid := listenerAt(address); pid > 0 && owned(pid) {
		return pid
	}
	return 0
}

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

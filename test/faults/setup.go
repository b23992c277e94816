package faults

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"regent/emulators"
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
	Can     Abilities
	dir     string
	starter *starter
}

// NewSetup builds the programs, which takes a minute where nothing is built yet. Close removes
// them.
func NewSetup(ctx context.Context, c SetupConfig) (*Setup, error) {
	dir, err := os.MkdirTemp("", "regent-faults-*")
	if err != nil {
		return nil, err
	}
	r := (&Setup{dir: dir, Can: abilities(), starter: newStarter()}).With(c)
	for _, args := range [][]string{
		{"-o", dir, "regent/cmd/regent", "regent/test/faults/agent", "regent/test/processes/lifespan"},
		{"-o", filepath.Join(dir, mortal), "-tags", "failpoints", "regent/cmd/regent"},
	} {
		if err := build(ctx, append([]string{"-overlay", c.Overlay}, args...)); err != nil {
			r.Close()
			return nil, err
		}
	}
	return r, nil
}

// With returns the same setup with other emulators. Close only the first.
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

// The programs.
const (
	regent   = "regent"
	mortal   = "mortal" // regent with failpoints
	agent    = "agent"
	lifespan = "lifespan"
)

func build(ctx context.Context, args []string) error {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", append([]string{"build"}, args...)...)
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("faults: %v: %w\n%s", cmd, err, &said)
	}
	return nil
}

// Close removes the built programs. All runs must have ended.
func (r *Setup) Close() error {
	r.starter.close()
	return os.RemoveAll(r.dir)
}

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
func (r *Setup) command(program string, env []string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(r.dir, program), args...)
	cmd.Env = append(environ(), env...)
	return cmd
}

// shifted is the command in a time namespace of its own.
func shifted(cmd *exec.Cmd, seconds int64) *exec.Cmd {
	offset := fmt.Sprint(seconds)
	in := exec.Command("unshare", append([]string{"-T", "--monotonic", offset, "--boottime", offset, cmd.Path}, cmd.Args[1:]...)...)
	in.Env = cmd.Env
	return in
}

// environ returns our environment without variables that change the behaviour of a program under
// test.
func environ() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return strings.HasSuffix(name, "_EMULATOR_HOST") || strings.HasPrefix(name, "REGENT_") || name == "PORT" || name == variable
	})
}

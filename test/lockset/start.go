package lockset

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Member is a started member.
type Member struct {
	cmd     *exec.Cmd
	stdin   io.Closer
	stderr  bytes.Buffer
	updates chan Update
}

// Start starts this program again as a member, with env added to the environment. It is killed when
// the test ends.
func Start(t testing.TB, c Config, env ...string) *Member {
	t.Helper()
	spec, err := json.Marshal(c)
	require.NoError(t, err)
	m := &Member{cmd: exec.Command(os.Args[0]), updates: make(chan Update, 1024)}
	m.cmd.Env = append(os.Environ(), append(env, variable+"="+string(spec))...)
	m.cmd.Stderr = &m.stderr
	stdout, err := m.cmd.StdoutPipe()
	require.NoError(t, err)
	if m.stdin, err = m.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, m.cmd.Start())
	go m.listen(stdout)
	t.Cleanup(func() {
		m.cmd.Process.Kill()
		for range m.updates {
		}
	})
	return m
}

// listen passes on the lines of the process until it ends.
func (m *Member) listen(stdout io.Reader) {
	defer close(m.updates)
	defer m.cmd.Wait()
	for d := json.NewDecoder(stdout); ; {
		var u Update
		if d.Decode(&u) != nil {
			return
		}
		m.updates <- u
	}
}

// Updates returns the channel of acknowledged updates. It is closed once the member has ended.
func (m *Member) Updates() <-chan Update { return m.updates }

// Pause stops the process with SIGSTOP, until Resume.
func (m *Member) Pause() error { return m.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume ends a Pause.
func (m *Member) Resume() error { return m.cmd.Process.Signal(syscall.SIGCONT) }

// End asks the member to finish its turns.
func (m *Member) End() { m.stdin.Close() }

// Stderr is its standard error, complete once it has ended.
func (m *Member) Stderr() string { return m.stderr.String() }

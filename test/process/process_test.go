package process_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"regent/test/process"
)

// starts has this binary start a process and wait, as a test does that is killed.
const starts = "PROCESS_TEST_STARTS"

func TestMain(m *testing.M) {
	if os.Getenv(starts) != "" {
		cmd := exec.Command("sleep", "1000")
		if err := process.Begin(cmd); err != nil {
			panic(err)
		}
		fmt.Printf(`{"message":"started","pid":%d}`+"\n", cmd.Process.Pid)
		select {}
	}
	os.Exit(m.Run())
}

func TestProcessesEndWithTheOneThatStartedThem(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0])
	cmd.Env = process.Environ(starts + "=1")
	p := process.Start(t, cmd)
	pid := int(p.Log.Await(t, "started")["pid"].(float64))
	fd, err := unix.PidfdOpen(pid, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	p.Cmd.Process.Kill()
	for { // forever, if it goes on
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		if n > 0 {
			return
		}
		if !errors.Is(err, syscall.EINTR) {
			t.Fatal(err)
		}
	}
}

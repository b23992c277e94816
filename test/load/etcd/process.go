package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"regent/test/process"
)

// server is a process that serves.
type server struct {
	address string // host:port

	cmd   *exec.Cmd
	stdin io.Closer
	log   *process.Log
	gone  chan struct{} // closed once the process has ended
}

// serving is the message with which a server logs that it serves, as JSON with its address.
const serving = "serving"

// serve starts the command and waits until it logs serving on its standard error. Its standard
// input stays open until stop. Name is for errors; env is added to the environment.
func serve(ctx context.Context, name string, cmd *exec.Cmd, env ...string) (*server, error) {
	s := &server{cmd: cmd, log: process.NewLog(), gone: make(chan struct{})}
	cmd.Env, cmd.Stderr = append(environ(), env...), s.log
	var err error
	if s.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := process.Begin(cmd); err != nil {
		return nil, err
	}
	go func() {
		cmd.Wait()
		s.log.Close()
		close(s.gone)
	}()
	fields, err := s.log.Find(ctx, serving)
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s.address = fields["address"].(string)
	return s, nil
}

// environ returns this process's environment without variables that would change a server's
// behaviour.
func environ() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return strings.HasSuffix(name, "_EMULATOR_HOST") ||
			slices.ContainsFunc([]string{"REGENT_", "ETCD_", "OTEL_"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) ||
			slices.Contains([]string{"PORT", "GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG", "XDG_STATE_HOME"}, name)
	})
}

// stop kills the process and returns when it has ended.
func (s *server) stop() {
	s.stdin.Close()
	s.cmd.Process.Kill()
	<-s.gone
}

// cpu returns the processor time, user and system, that a process has used so far. It is read from
// /proc/PID/stat; see proc_pid_stat(5).
func cpu(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read what a process uses: %w", err)
	}
	name := strings.LastIndex(string(stat), ") ") // the program's name, before it, may contain anything
	fields := strings.Fields(string(stat[name+1:]))
	const utime, stime = 14 - 3, 15 - 3 // the first field after the name is the third
	user, err1 := strconv.Atoi(fields[utime])
	system, err2 := strconv.Atoi(fields[stime])
	const tick = 10 * time.Millisecond // the same on every Linux that Go supports
	return time.Duration(user+system) * tick, errors.Join(err1, err2)
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// server is a process that serves.
type server struct {
	address string // host:port

	cmd   *exec.Cmd
	stdin io.Closer
	gone  chan struct{} // closed once the process has ended

	mu   sync.Mutex // guards tail
	tail []string   // the last lines of its log
}

// serving is the message with which a server logs that it serves, as JSON with its address.
const serving = "serving"

// serve starts the command and waits until it logs serving on its standard error. Its standard
// input stays open until stop. Name is for errors; env is added to the environment.
func serve(ctx context.Context, name string, cmd *exec.Cmd, env ...string) (*server, error) {
	cmd.Env = append(environ(), env...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{cmd: cmd, stdin: stdin, gone: make(chan struct{})}
	address := make(chan string, 1)
	go s.listen(stderr, address)
	select {
	case s.address = <-address:
		return s, nil
	case <-s.gone:
		return nil, fmt.Errorf("%s has ended: %s", name, s.log())
	case <-ctx.Done():
		s.stop()
		return nil, fmt.Errorf("%s: %w: %s", name, ctx.Err(), s.log())
	}
}

// environ is this process's environment without what would change how a server behaves.
func environ() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return strings.HasSuffix(name, "_EMULATOR_HOST") ||
			slices.ContainsFunc([]string{"REGENT_", "ETCD_", "OTEL_"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) ||
			slices.Contains([]string{"PORT", "GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG", "XDG_STATE_HOME"}, name)
	})
}

// listen keeps the end of the server's log and finds its address there.
func (s *server) listen(from io.Reader, address chan<- string) {
	defer close(s.gone)
	for lines := bufio.NewScanner(from); lines.Scan(); {
		s.mu.Lock()
		s.tail = append(s.tail[max(0, len(s.tail)-9):], lines.Text())
		s.mu.Unlock()
		var line struct{ Message, Msg, Address string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Message+line.Msg == serving {
			address <- line.Address
		}
	}
	s.cmd.Wait()
}

// log returns the last lines of the server's log.
func (s *server) log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.tail, "\n")
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

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

// server is the process of one of the systems.
type server struct {
	name    string
	address string // host:port
	metrics string // host:port, if it shows any
	cmd     *exec.Cmd
	leave   io.Closer
	gone    chan struct{} // closed once the process has ended

	mu   sync.Mutex // guards tail
	tail []string   // of what it has said
}

// startTimeout is how long a server may take until it serves.
const startTimeout = 30 * time.Second

// serve starts the command and waits until it says, in a line of JSON, that it is serving, and where. Its standard input stays open until stop.
func serve(ctx context.Context, name string, cmd *exec.Cmd, env ...string) (*server, error) {
	cmd.Env = append(environ(), env...)
	leave, err := cmd.StdinPipe()
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
	s := &server{name: name, cmd: cmd, leave: leave, gone: make(chan struct{})}
	address := make(chan string, 1)
	go s.listen(stderr, address)
	select {
	case s.address = <-address:
		return s, nil
	case <-s.gone:
		return nil, fmt.Errorf("%s has ended: %s", name, s.said())
	case <-time.After(startTimeout):
		err = errors.New("it does not serve")
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.stop()
	return nil, fmt.Errorf("%s: %w: %s", name, err, s.said())
}

// environ is this process's environment without what would change how a server behaves.
func environ() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return slices.ContainsFunc([]string{"REGENT_", "ETCD_", "OTEL_", "PORT=", "GOMAXPROCS=", "GOGC=", "GOMEMLIMIT=", "GODEBUG="},
			func(prefix string) bool { return strings.HasPrefix(entry, prefix) })
	})
}

// listen keeps the end of what the server says, and finds its address.
func (s *server) listen(from io.Reader, address chan<- string) {
	defer close(s.gone)
	for lines := bufio.NewScanner(from); lines.Scan(); {
		s.mu.Lock()
		s.tail = append(s.tail[max(0, len(s.tail)-9):], lines.Text())
		s.mu.Unlock()
		var line struct{ Message, Msg, Address string }
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue
		}
		switch line.Message + line.Msg {
		case showing: // stands before the other
			s.metrics = line.Address
		case serving:
			address <- line.Address
		}
	}
	s.cmd.Wait()
}

// What a server says, with an address.
const (
	serving = "serving"
	showing = "showing metrics"
)

func (s *server) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.tail, "\n")
}

// stop kills the process and waits for its end. Its data are of no use to anybody.
func (s *server) stop() {
	s.leave.Close()
	s.cmd.Process.Kill()
	<-s.gone
}

// pid is the process's id, for usage.
func (s *server) pid() int { return s.cmd.Process.Pid }

// usage is what a process has used so far.
type usage struct {
	CPU     time.Duration // user and system
	Memory  int64         // resident bytes
	Written int64         // bytes that it had written to the disk
}

// tick is the unit of time of /proc, the same on every Linux that Go knows.
const tick = 10 * time.Millisecond

// usageOf reads /proc.
func usageOf(pid int) (usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, fmt.Errorf("what a process uses is read from /proc: %w", err)
	}
	u, err := parseStat(string(stat), int64(os.Getpagesize()))
	if err != nil {
		return u, err
	}
	counts, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return u, nil // some systems let nobody read it
	}
	for line := range strings.Lines(string(counts)) {
		if text, ok := strings.CutPrefix(line, "write_bytes: "); ok {
			u.Written, _ = strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		}
	}
	return u, nil
}

// parseStat reads /proc/PID/stat; see proc_pid_stat(5).
func parseStat(stat string, page int64) (usage, error) {
	name := strings.LastIndex(stat, ") ") // the end of the program's name, which may have anything in it
	fields := strings.Fields(stat[name+1:])
	const utime, stime, rss = 14 - 3, 15 - 3, 24 - 3 // the first field after the name is the third
	if name < 0 || len(fields) <= rss {
		return usage{}, fmt.Errorf("no /proc/PID/stat: %q", stat)
	}
	var numbers [3]int64
	for i, at := range []int{utime, stime, rss} {
		n, err := strconv.ParseInt(fields[at], 10, 64)
		if err != nil {
			return usage{}, err
		}
		numbers[i] = n
	}
	return usage{CPU: time.Duration(numbers[0]+numbers[1]) * tick, Memory: numbers[2] * page}, nil
}

// minus is what was used since before; the memory is what it is.
func (u usage) minus(before usage) usage {
	return usage{CPU: u.CPU - before.CPU, Memory: u.Memory, Written: u.Written - before.Written}
}

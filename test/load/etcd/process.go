package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
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
	metrics string // host:port of its metrics; "" if it shows none

	name  string
	cmd   *exec.Cmd
	stdin io.Closer
	gone  chan struct{} // closed once the process has ended

	mu   sync.Mutex // guards tail
	tail []string   // the last lines of its log
}

// startTimeout is how long a server may take until it serves.
const startTimeout = 30 * time.Second

// serving is the message with which a server logs that it serves, as JSON with its address.
const serving = "serving"

// showing is the message with which it logs the address of its metrics, before the other.
const showing = "showing metrics"

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
	s := &server{name: name, cmd: cmd, stdin: stdin, gone: make(chan struct{})}
	address := make(chan string, 1)
	go s.listen(stderr, address)
	select {
	case s.address = <-address:
		return s, nil
	case <-s.gone:
		return nil, fmt.Errorf("%s has ended: %s", name, s.log())
	case <-time.After(startTimeout):
		err = fmt.Errorf("does not serve within %v", startTimeout)
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.stop()
	return nil, fmt.Errorf("%s: %w: %s", name, err, s.log())
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

// listen keeps the end of the server's log and finds its addresses there.
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
		case showing:
			s.metrics = line.Address
		case serving:
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

// usage returns what the server has used so far.
func (s *server) usage() (usage, error) { return usageOf(s.cmd.Process.Pid) }

// metric returns the sum of a metric over all its labels.
func (s *server) metric(ctx context.Context, name string) (float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.metrics+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	sum := 0.0
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		line := lines.Text()
		if end := strings.IndexAny(line, "{ "); end < 0 || line[:end] != name {
			continue
		}
		n, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// usage is what a process has used so far.
type usage struct {
	CPU     time.Duration // user and system
	Memory  int64         // resident bytes
	Written int64         // bytes given to the disk; 0 where that cannot be read
}

// tick is the unit of time in /proc, the same on every Linux that Go supports.
const tick = 10 * time.Millisecond

// usageOf reads /proc.
func usageOf(pid int) (usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, fmt.Errorf("read what a process uses: %w", err)
	}
	u, err := parseStat(string(stat), int64(os.Getpagesize()))
	if err != nil {
		return u, err
	}
	counts, _ := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid)) // some systems let no one read it
	for line := range strings.Lines(string(counts)) {
		if text, ok := strings.CutPrefix(line, "write_bytes: "); ok {
			u.Written, _ = strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		}
	}
	return u, nil
}

// parseStat reads /proc/PID/stat; see proc_pid_stat(5).
func parseStat(stat string, page int64) (usage, error) {
	name := strings.LastIndex(stat, ") ") // the program's name, before it, may contain anything
	fields := strings.Fields(stat[name+1:])
	const utime, stime, rss = 14 - 3, 15 - 3, 24 - 3 // the first field after the name is the third
	if name < 0 || len(fields) <= rss {
		return usage{}, fmt.Errorf("not /proc/PID/stat: %q", stat)
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

// minus returns what was used since before. Memory stays as it is.
func (u usage) minus(before usage) usage {
	return usage{CPU: u.CPU - before.CPU, Memory: u.Memory, Written: u.Written - before.Written}
}

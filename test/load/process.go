package load

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

// Server is a process that serves.
type Server struct {
	Address string // host:port
	Metrics string // host:port of its metrics; "" if it shows none

	name  string
	cmd   *exec.Cmd
	stdin io.Closer
	gone  chan struct{} // closed once the process has ended

	mu   sync.Mutex // guards tail
	tail []string   // the last lines of its log
}

// StartTimeout is how long a server may take until it serves.
const StartTimeout = 30 * time.Second

// Serving is the message with which a server logs that it serves, as JSON with its address.
const Serving = "serving"

// showing is the message with which it logs the address of its metrics, before the other.
const showing = "showing metrics"

// Serve starts the command and waits until it logs Serving on its standard error. Its standard
// input stays open until Stop. Name is for errors; env is added to the environment.
func Serve(ctx context.Context, name string, cmd *exec.Cmd, env ...string) (*Server, error) {
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
	s := &Server{name: name, cmd: cmd, stdin: stdin, gone: make(chan struct{})}
	address := make(chan string, 1)
	go s.listen(stderr, address)
	select {
	case s.Address = <-address:
		return s, nil
	case <-s.gone:
		return nil, fmt.Errorf("%s has ended: %s", name, s.Log())
	case <-time.After(StartTimeout):
		err = fmt.Errorf("does not serve within %v", StartTimeout)
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.Stop()
	return nil, fmt.Errorf("%s: %w: %s", name, err, s.Log())
}

// environ is this process's environment without what would change how a server behaves.
func environ() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return slices.ContainsFunc([]string{"REGENT_", "ETCD_", "OTEL_", "PORT=", "GOMAXPROCS=", "GOGC=", "GOMEMLIMIT=", "GODEBUG="},
			func(prefix string) bool { return strings.HasPrefix(entry, prefix) })
	})
}

// listen keeps the end of the server's log and finds its addresses there.
func (s *Server) listen(from io.Reader, address chan<- string) {
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
			s.Metrics = line.Address
		case Serving:
			address <- line.Address
		}
	}
	s.cmd.Wait()
}

// Log returns the last lines of the server's log.
func (s *Server) Log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.tail, "\n")
}

// Stop kills the process and returns when it has ended.
func (s *Server) Stop() {
	s.stdin.Close()
	s.cmd.Process.Kill()
	<-s.gone
}

// Usage returns what the server has used so far.
func (s *Server) Usage() (Usage, error) { return UsageOf(s.cmd.Process.Pid) }

// Metric returns the sum of a metric over all its labels.
func (s *Server) Metric(ctx context.Context, name string) (float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Metrics+"/metrics", nil)
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

// Usage is what a process has used so far.
type Usage struct {
	CPU     time.Duration // user and system
	Memory  int64         // resident bytes
	Written int64         // bytes given to the disk; 0 where that cannot be read
}

// tick is the unit of time in /proc, the same on every Linux that Go supports.
const tick = 10 * time.Millisecond

// UsageOf reads /proc.
func UsageOf(pid int) (Usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("read what a process uses: %w", err)
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
func parseStat(stat string, page int64) (Usage, error) {
	name := strings.LastIndex(stat, ") ") // the program's name, before it, may contain anything
	fields := strings.Fields(stat[name+1:])
	const utime, stime, rss = 14 - 3, 15 - 3, 24 - 3 // the first field after the name is the third
	if name < 0 || len(fields) <= rss {
		return Usage{}, fmt.Errorf("not /proc/PID/stat: %q", stat)
	}
	var numbers [3]int64
	for i, at := range []int{utime, stime, rss} {
		n, err := strconv.ParseInt(fields[at], 10, 64)
		if err != nil {
			return Usage{}, err
		}
		numbers[i] = n
	}
	return Usage{CPU: time.Duration(numbers[0]+numbers[1]) * tick, Memory: numbers[2] * page}, nil
}

// Minus returns what was used since before. Memory stays as it is.
func (u Usage) Minus(before Usage) Usage {
	return Usage{CPU: u.CPU - before.CPU, Memory: u.Memory, Written: u.Written - before.Written}
}

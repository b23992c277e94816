package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"regent/leadership"
	"regent/leadership/client"
)

// reporter sets the report of the lease from the command's reports: a file that the command
// rewrites, or the lines that it prints. The command may be started several times under one lease;
// the report adds them up.
type reporter struct {
	path  string       // "" for none
	lines *lineCounter // nil for none
	log   *slog.Logger

	seen   fs.FileInfo   // of the file when it was read last; nil if there was none
	bad    bool          // the file was no valid report, and that was logged
	before client.Report // sum of the earlier commands of this lease
	file   client.Report // of this command
	from   int64         // number of lines when the lease was granted
}

// granted resets the reporter for a new lease.
func (r *reporter) granted() {
	r.before, r.file = client.Report{}, client.Report{}
	if r.lines != nil {
		r.from = r.lines.count.Load()
	}
}

// begin is called before the command starts. It ignores the file that an earlier command has left.
func (r *reporter) begin() {
	r.before, r.file = sum(r.before, r.file), client.Report{}
	if r.path != "" {
		r.seen, _ = os.Stat(r.path)
	}
}

func (r *reporter) step(l *client.Lease) {
	if r.path != "" {
		r.read()
	}
	all := sum(r.before, r.file)
	if r.lines != nil {
		all.Progress = max(all.Progress, r.lines.count.Load()-r.from)
	}
	r.tell(l.Report(all))
}

// read reads the file if it has changed. It logs and ignores an invalid report. It ignores an empty
// file silently, because a shell empties a file before it writes.
func (r *reporter) read() {
	now, err := os.Stat(r.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && r.seen != nil && same(r.seen, now) {
		return
	}
	var report client.Report
	if err == nil {
		report, err = readReport(r.path, now)
	}
	switch r.seen = now; {
	case errors.Is(err, errEmpty):
		return
	case err != nil:
		r.tell(err)
		return
	}
	r.file, r.bad = report, false
}

// tell logs an error, once until a valid report has come.
func (r *reporter) tell(err error) {
	if err != nil && !r.bad {
		r.bad = true
		r.log.Warn("the report of the command is ignored", "file", r.path, "reason", err)
	}
}

func same(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

var errEmpty = errors.New("it is empty")

func readReport(path string, info fs.FileInfo) (client.Report, error) {
	if !info.Mode().IsRegular() {
		return client.Report{}, errors.New("it is not a regular file")
	}
	if info.Size() > leadership.MaxReportBytes {
		return client.Report{}, fmt.Errorf("it has %d bytes, and a report has at most %d", info.Size(), leadership.MaxReportBytes)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return client.Report{}, err
	}
	if len(text) == 0 {
		return client.Report{}, errEmpty
	}
	return client.ParseReport(text)
}

// sum returns the report b with the counters of a added.
func sum(a, b client.Report) client.Report {
	b.Progress += a.Progress
	b.Tasks += a.Tasks
	b.TokensUsed += a.TokensUsed
	b.Calls += a.Calls
	b.Errors += a.Errors
	return b
}

// lineCounter passes the output of commands on, and counts its lines.
type lineCounter struct {
	in, out *os.File
	count   atomic.Int64
	ended   atomic.Bool   // no command runs any more
	done    chan struct{} // closed when all output was passed on
}

// newLineCounter returns a counter, and the file that is the standard output of the commands.
func newLineCounter(out *os.File) (c *lineCounter, to *os.File, err error) {
	in, to, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	c = &lineCounter{in: in, out: out, done: make(chan struct{})}
	go c.pass()
	return c, to, nil
}

// pipeSize is the capacity of a pipe.
const pipeSize = 64 << 10

// pass copies until all writers are gone. A process that has escaped from a command may write for
// ever, so after the commands have ended it copies at most pipeSize more bytes.
func (c *lineCounter) pass() {
	defer close(c.done)
	defer c.in.Close() // so that a command gets an error once its reader is gone
	buffer := make([]byte, 32<<10)
	for late := 0; late < pipeSize; {
		n, err := c.in.Read(buffer)
		c.count.Add(int64(bytes.Count(buffer[:n], []byte{'\n'})))
		if _, failed := c.out.Write(buffer[:n]); failed != nil {
			return
		}
		ended := c.ended.Load()
		if ended {
			late += n
			c.in.SetReadDeadline(time.Now().Add(drainLimit))
		}
		if err != nil && (errors.Is(err, io.EOF) || ended) {
			return
		}
	}
}

// end waits until all output of the commands was passed on.
func (c *lineCounter) end(to *os.File) {
	to.Close()
	c.ended.Store(true)
	c.in.SetReadDeadline(time.Now().Add(drainLimit))
	<-c.done
}

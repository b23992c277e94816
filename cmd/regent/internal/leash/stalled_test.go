//go:build linux

package leash_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"regent/cmd/regent/internal/leash"
	"regent/leadership/boottime"
)

// stalled is a log whose reader has stopped: a full pipe.
type stalled struct {
	slog.Handler
	full chan struct{}
}

func (s stalled) Handle(context.Context, slog.Record) error {
	<-s.full
	return nil
}

func TestBlockedLogDoesNotKeepACommandAliveWithoutItsGuard(t *testing.T) {
	dir := t.TempDir()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	var deadline, held atomic.Int64 // held: it is no longer moved on
	deadline.Store(int64(boottime.Now() + 4*time.Second))
	full := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		_, err := leash.Run(context.Background(), leash.Config{
			Path: "/bin/sh", Args: []string{"sh", "-c", "echo $$ > " + dir + "/pid; sleep 600"}, Env: os.Environ(), DeadlineVariable: variable,
			Files: [3]*os.File{null, null, null}, Deadline: func() time.Duration {
				if held.Load() == 0 {
					deadline.Store(int64(boottime.Now() + 4*time.Second))
				}
				return time.Duration(deadline.Load())
			}, Grace: 300 * time.Millisecond,
			Log: slog.New(stalled{slog.DiscardHandler, full}),
		})
		ended <- err
	}()
	pid := 0
	for began := time.Now(); pid == 0; time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatalf("the command does not begin within %v", patience)
		}
		text, _ := os.ReadFile(filepath.Join(dir, "pid"))
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	guard := ownGuard(t)
	held.Store(1)
	syscall.Kill(guard, syscall.SIGKILL)
	awaitGone(t, pid) // while the log is blocked
	close(full)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// ownGuard waits for a guard that is a child of this process.
func ownGuard(t *testing.T) int {
	t.Helper()
	for began := time.Now(); time.Since(began) < patience; time.Sleep(5 * time.Millisecond) {
		all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, name := range all {
			pid, _ := strconv.Atoi(strings.Split(name, "/")[2])
			line, _ := os.ReadFile(name)
			status, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
			if bytes.Contains(line, []byte("\x00run-guard\x00")) && bytes.Contains(status, []byte("\nPPid:\t"+strconv.Itoa(os.Getpid())+"\n")) {
				return pid
			}
		}
	}
	t.Fatal("no guard")
	return 0
}

package emulators

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"regent/emulators/need"
)

type process struct {
	pid, session int
	state        byte
	args         string
}

// processes returns all running processes. Zombies are left out: they hold nothing any more.
func processes(t *testing.T) []process {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		need.Lacks(t, "no /proc here to look for processes that stay behind")
	}
	var all []process
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended since
		}
		args, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if p := parseProcess(string(stat), string(args)); p.state != 'Z' {
			all = append(all, p)
		}
	}
	return all
}

// parseProcess parses "pid (name) state ppid pgrp session ...", where the name may contain
// anything.
func parseProcess(stat, args string) process {
	pid, rest, _ := strings.Cut(stat, " ")
	fields := strings.Fields(rest[strings.LastIndex(rest, ")")+1:])
	p := process{state: fields[0][0], args: strings.ReplaceAll(args, "\x00", " ")}
	p.pid, _ = strconv.Atoi(pid)
	p.session, _ = strconv.Atoi(fields[3])
	return p
}

// family returns the session of the guard of the emulator at host, and the number of processes in
// it.
func family(t *testing.T, host string) (session, size int) {
	t.Helper()
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		t.Fatalf("split %q: %v", host, err)
	}
	all := processes(t)
	named := regexp.MustCompile(`\b` + port + `\b`) // and not as a part of the folder of a test
	i := slices.IndexFunc(all, func(p process) bool { return named.MatchString(p.args) && strings.Contains(p.args, "emulator") })
	if i < 0 {
		t.Fatalf("no process has the port %s among its arguments", port)
	}
	return all[i].session, len(inSession(all, all[i].session))
}

func inSession(all []process, session int) []string {
	var found []string
	for _, p := range all {
		if p.session == session {
			found = append(found, fmt.Sprintf("%d %.120s", p.pid, p.args))
		}
	}
	return found
}

func wantGone(t *testing.T, session int, within time.Duration) {
	t.Helper()
	var left []string
	for deadline := time.Now().Add(within); ; time.Sleep(20 * time.Millisecond) {
		if left = inSession(processes(t), session); len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d processes are left after %v:\n%s", len(left), within, strings.Join(left, "\n"))
		}
	}
}

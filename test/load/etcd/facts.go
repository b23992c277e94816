package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Facts describe the machine and the versions of a run.
type Facts struct {
	Date     time.Time
	Took     time.Duration
	Mode     string // full or quick
	CPU      string
	Cores    int
	Disk     string // the type of the file system
	Fsync    Spread // milliseconds, of a block of 4 KiB
	Go       string
	Regent   string    // the revision it was built from
	Versions []Version // of the modules in etcd and Regent, which use the same versions
	Rounds   int
	Long     time.Duration // of a round
}

// Version is the version of a module in this build.
type Version struct{ Module, Version string }

// gather fills in what can be known before the first round.
func (f *Facts) gather(ctx context.Context, dir string) (err error) {
	f.Date, f.Cores, f.Go = time.Now().UTC(), runtime.NumCPU(), runtime.Version()
	f.CPU = processor()
	if f.Disk, err = fileSystem(ctx, dir); err != nil {
		return err
	}
	if f.Fsync, err = probe(dir); err != nil {
		return err
	}
	f.Regent = revision(ctx)
	if info, ok := debug.ReadBuildInfo(); ok {
		shown := []string{"go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/client/v3", "go.etcd.io/raft/v3", "go.etcd.io/bbolt", "google.golang.org/grpc"}
		for _, m := range info.Deps {
			if slices.Contains(shown, m.Path) {
				f.Versions = append(f.Versions, Version{m.Path, m.Version})
			}
		}
	}
	return nil
}

// revision returns the measured commit, if git knows it.
func revision(ctx context.Context) string {
	text, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--exclude", "*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}

func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(strings.TrimLeft(name, "\t: "))
		}
	}
	return runtime.GOARCH
}

// inMemory is a file system on which an fsync costs nothing.
const inMemory = "tmpfs"

// fileSystem returns the type of the file system of a folder.
func fileSystem(ctx context.Context, dir string) (string, error) {
	text, err := exec.CommandContext(ctx, "stat", "-f", "-c", "%T", dir).Output()
	return strings.TrimSpace(string(text)), err
}

// probes is how often an fsync is tried.
const probes = 200

// probe measures how long the disk takes to make a block durable.
func probe(dir string) (Spread, error) {
	f, err := os.Create(filepath.Join(dir, "probe"))
	if err != nil {
		return Spread{}, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	var took []float64
	for range probes {
		begin := time.Now()
		if _, err := f.Write(make([]byte, 4<<10)); err != nil {
			return Spread{}, err
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			return Spread{}, err
		}
		took = append(took, milliseconds(time.Since(begin)))
	}
	return spreadOf(took), nil
}

package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// Config says how much is tried.
type Config struct {
	Seed uint64 // determines the trials, except how the callers of a recorded process interleave
	// Images is how many crashes are tried, Corrupted how many damaged folders.
	Images, Corrupted int
}

// Result is what was tried. All of it was right.
type Result struct {
	Snapshots int // that the traced process made in its checkpoints
	Images    int // crashes
	Corrupted int // damaged folders
	Refused   int // of them, by name; the others were right
	Trials    int // runs in which one call failed
	// Kinds counts all images and trials by their kind and verdict, as in "torn, whole".
	Kinds map[string]int
}

const (
	imagesEach    = 1000 // of one recording
	corruptedEach = 200
)

// Run traces the embedded store at work and checks that its file survives. An error names the
// folder with the log and the image that show it, the seed and the plan. It is errNoTrace where
// processes cannot be traced.
//
// Run starts its own program as the writer, as many at a time as there are processors. It needs
// some ten megabytes in memory.
func Run(ctx context.Context, c Config) (Result, error) {
	r := Result{Kinds: make(map[string]int)}
	dir, err := folder()
	if err != nil {
		return r, err
	}
	n := max((c.Images+imagesEach-1)/imagesEach, (c.Corrupted+corruptedEach-1)/corruptedEach)
	for i := range n {
		err = c.round(ctx, &r, i, n, filepath.Join(dir, fmt.Sprintf("recording-%d", i)))
		switch {
		case ctx.Err() != nil, errors.Is(err, errNoTrace):
			return r, errors.Join(err, os.RemoveAll(dir))
		case err != nil:
			return r, fmt.Errorf("crash: seed %d: see %s: %w", c.Seed, dir, err)
		}
	}
	return r, os.RemoveAll(dir)
}

// folder makes a folder to work in, in memory if it can. Its path contains no symbolic links, as
// the tracer needs.
func folder() (string, error) {
	in := ""
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		in = "/dev/shm"
	}
	dir, err := os.MkdirTemp(in, "regent-crash-*")
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// round makes the i-th of n recordings and everything that is tried with it.
func (c Config) round(ctx context.Context, r *Result, i, n int, dir string) error {
	c.Seed = rand.New(rand.NewPCG(c.Seed, uint64(i))).Uint64()
	c.Images, c.Corrupted = c.Images*(i+1)/n-c.Images*i/n, c.Corrupted*(i+1)/n-c.Corrupted*i/n
	if err := c.images(ctx, r, dir); err != nil {
		return err
	}
	if err := c.failingCalls(ctx, r, dir); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// images traces a writer and checks what crashes and bad disks leave of its file.
func (c Config) images(ctx context.Context, r *Result, dir string) error {
	files := filepath.Join(dir, folderName)
	if err := os.MkdirAll(files, 0o700); err != nil {
		return err
	}
	log, err := record(ctx, files, script{Seed: c.Seed, Callers: 4, Calls: 20})
	if err != nil {
		return err
	}
	r.recorded(log)
	seen, err := newRecording(log, nil, dir)
	if err != nil {
		return err
	}
	for _, part := range []struct {
		plans []plan
		count *int
	}{{crashes(log, c.Seed, c.Images), &r.Images}, {damages(log, c.Seed, c.Corrupted), &r.Corrupted}} {
		if err := r.tried(ctx, len(part.plans), func() check { return seen.checks(part.plans) }, part.count); err != nil {
			return errors.Join(err, save(log, filepath.Join(dir, "recording.log")))
		}
	}
	return nil
}

// recorded counts the snapshots.
func (r *Result) recorded(log []entry) {
	for _, e := range log {
		if e.Kind == renamed && strings.HasPrefix(e.To, "snapshot-") {
			r.Snapshots++
		}
	}
}

// tried checks images and counts what was found.
func (r *Result) tried(ctx context.Context, images int, worker func() check, count *int) error {
	found, err := checkAll(ctx, images, worker)
	for kind, n := range found {
		r.Kinds[kind] += n
		*count += n
		if strings.HasSuffix(kind, refused) {
			r.Refused += n
		}
	}
	return err
}

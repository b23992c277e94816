package crash

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"slices"
)

// failingCalls lets every call of a short run of the writer fail, one in each run.
func (c Config) failingCalls(ctx context.Context, r *Result, dir string) error {
	t := &failureRuns{Config: c, dir: filepath.Join(dir, "trials")}
	if err := t.prepare(ctx); err != nil {
		return err
	}
	for _, round := range []struct {
		trials []trial
		clean  *truth
	}{{t.creationTrials(), nil}, {t.laterTrials(), t.clean}} {
		end := func(run int) (kind, verdict string, err error) {
			return round.trials[run].end(ctx, t.dir, run, c.Seed, round.clean)
		}
		if err := r.tried(ctx, len(round.trials), func() check { return end }, &r.Trials); err != nil {
			return err
		}
	}
	return nil
}

// failureRuns has the runs without failures: one in which the file is created, and one on that
// file.
type failureRuns struct {
	Config
	dir           string
	created, used []entry
	clean         *truth // of the one on that file
	script        script
}

// prepare makes the two runs. There is one caller, so that every run does the same.
func (t *failureRuns) prepare(ctx context.Context) (err error) {
	t.script = script{Seed: t.Seed, Callers: 1, Calls: 38, Fill: 2, Checkpoint: 6 << 10}
	if t.created, _, err = (trial{script: t.script}).try(ctx, filepath.Join(t.dir, "created")); err != nil {
		return err
	}
	t.script.Start = 1
	used, own, err := (trial{before: t.created, script: t.script}).try(ctx, filepath.Join(t.dir, "used"))
	if err != nil {
		return err
	}
	t.used = used[own:]
	t.clean, err = truthOf(used, nil)
	return err
}

// creationTrials are trials of the creation, before anything is answered.
func (t *failureRuns) creationTrials() []trial {
	s := t.script
	s.Start = 0
	first := slices.IndexFunc(t.created, func(e entry) bool { return e.Kind == said })
	return trials(t.created[:first], nil, s, rand.New(rand.NewPCG(t.Seed, 5)))
}

// laterTrials are trials of a file with something in it.
func (t *failureRuns) laterTrials() []trial {
	return trials(t.used, t.created, t.script, rand.New(rand.NewPCG(t.Seed, 6)))
}

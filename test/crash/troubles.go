package crash

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// troubles has every call fail that a short run of the writer makes, one in each run, and has another run on a disk that is too small.
func (c Config) troubles(ctx context.Context, r *Result, dir string) error {
	t := &trouble{Config: c, dir: filepath.Join(dir, "trials")}
	if err := t.prepare(ctx); err != nil {
		return err
	}
	for _, round := range []struct {
		trials []trial
		clean  string
	}{{t.births(), ""}, {t.days(), t.clean()}} {
		if err := carryOut(ctx, round.trials, t.dir); err != nil {
			return err
		}
		e := endings{Dir: t.dir, Clean: round.clean, Seed: c.Seed, Runs: len(round.trials)}
		for _, trial := range round.trials {
			e.Whats = append(e.Whats, trial.what)
		}
		if err := r.tried(ctx, e, &r.Trials); err != nil {
			return err
		}
	}
	return t.fill(ctx, r)
}

// trouble is what happens when there is none: a life of the writer in which the file is created, and a life on that file.
type trouble struct {
	Config
	dir        string
	birth, day []entry
	script     script
}

func (t *trouble) clean() string { return filepath.Join(t.dir, "clean.log") }

// prepare makes the two lives. There is one caller, so that every run does the same.
func (t *trouble) prepare(ctx context.Context) (err error) {
	t.script = script{Seed: t.Seed, Callers: 1, Calls: 12, Fill: 2}
	if t.birth, _, err = (trial{script: t.script}).try(ctx, filepath.Join(t.dir, "birth")); err != nil {
		return err
	}
	t.script.Life = 1
	day, own, err := (trial{before: t.birth, script: t.script}).try(ctx, filepath.Join(t.dir, "day"))
	if err != nil {
		return err
	}
	t.day = day[own:]
	return save(day, t.clean())
}

// births are trials of the creation, before anything is answered.
func (t *trouble) births() []trial {
	s := t.script
	s.Life = 0
	first := slices.IndexFunc(t.birth, func(e entry) bool { return e.Kind == said })
	return trials(t.birth[:first], nil, s, rand.New(rand.NewPCG(t.Seed, 5)))
}

// days are trials of a file with something in it.
func (t *trouble) days() []trial {
	return trials(t.day, t.birth, t.script, rand.New(rand.NewPCG(t.Seed, 6)))
}

// diskBytes is how much the small disk holds.
const diskBytes = 1 << 20

// fill has the writer fill a disk, and judges what is on it then.
func (t *trouble) fill(ctx context.Context, r *Result) error {
	disk := filepath.Join(t.dir, "disk")
	if err := os.MkdirAll(disk, 0o700); err != nil {
		return err
	}
	f := fullDisk{
		Script: script{Seed: t.Seed, Callers: 1, Calls: 20, Fill: 500},
		Disk:   disk, Bytes: diskBytes,
		Out: filepath.Join(t.dir, "full.db"),
	}
	var spoken []entry
	err := listen(ctx, partFull, f, func(line []byte) error {
		spoken = append(spoken, entry{Kind: said, Data: append(slices.Clone(line), '\n')})
		return nil
	})
	if err != nil {
		if strings.Contains(err.Error(), errNoMount.Error()) {
			return nil
		}
		return err
	}
	log, err := t.left(spoken, f.Out)
	if err != nil {
		return err
	}
	e := endings{Dir: t.dir, Seed: t.Seed, Runs: 1, Whats: []string{"a full disk"}}
	if err := save(log, logOf(t.dir, 0)); err != nil {
		return err
	}
	if failed, err := steady(log); !failed || err != nil {
		return errors.Join(errors.New("the disk is not full, or the store does not mind"), err)
	}
	return r.tried(ctx, e, &r.FullDisks)
}

// left is a log of what was said, and of the file that there was in the end.
func (t *trouble) left(spoken []entry, path string) ([]entry, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	log, err := holds(spoken, content{data, int64(len(data))}, path)
	return log, err
}

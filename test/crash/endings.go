package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
)

// endings is a task: what many runs have left in the end.
type endings struct {
	Dir      string // with the log of the i-th run as i.log
	Clean    string // the path of the log of the run to which nothing happened; "" for none
	Seed     uint64
	Runs     int
	From, To int
	Whats    []string // what happened to each
}

func (e endings) part() (string, int) { return partEndings, e.Runs }

func (e endings) between(from, to int) any {
	e.From, e.To = from, to
	return e
}

func (e endings) keep(run int, wrong string) error {
	return fmt.Errorf("%s: %s: %s", logOf(e.Dir, run), e.Whats[run], wrong)
}

// look judges what the runs have left: as it is, and after power cuts.
func look(e endings) error {
	var clean *truth
	if e.Clean != "" {
		log, err := load(e.Clean)
		if err != nil {
			return err
		}
		if clean, err = tell(log, nil); err != nil {
			return err
		}
	}
	for i := e.From; i < e.To; i++ {
		err := find(i, func() (kind, verdict string, err error) { return e.judge(i, clean) })
		if err != nil {
			return err
		}
	}
	return nil
}

// maxEndings is how many power cuts are tried at the end of a run.
const maxEndings = 12

// judge says whether the run was harmed: whether the store failed.
func (e endings) judge(run int, clean *truth) (kind, verdict string, err error) {
	log, err := load(logOf(e.Dir, run))
	if err != nil {
		return "", "", err
	}
	t, err := tell(log, clean)
	if err != nil {
		return "", "", err
	}
	failed, err := steady(log)
	if err != nil {
		return "", "", err
	}
	random := rand.New(rand.NewPCG(e.Seed, uint64(run)))
	d := newDisk()
	d.advance(log, len(log))
	plans := []plan{{}, {Cut: &cut{Drop: 1<<63 - 1}}}
	for _, c := range d.cuts(random) {
		plans = append(plans, plan{Cut: &c})
	}
	for i, p := range plans[:min(len(plans), maxEndings)] {
		p.At, p.Seen = len(log), len(log)
		_, err := t.try(d, log, p, filepath.Join(e.Dir, strconv.Itoa(run)+"-"+strconv.Itoa(i)), i%4 == 3)
		if err = about(p, err); err != nil {
			return "", "", err
		}
	}
	if failed {
		return "fault", "stopped", nil
	}
	return "fault", "went on", nil
}

// steady says whether the store has failed and, if it has, that it kept silent from then on: an answer after that could be lost.
func steady(log []entry) (failed bool, err error) {
	var first line
	for _, e := range log {
		if e.Kind != said {
			continue
		}
		l, err := decode(e.Data)
		switch {
		case err != nil:
			return failed, err
		case !l.Told:
		case failed && !l.lost():
			return failed, fmt.Errorf("call %s was answered after %s had failed: %w", l.ID, first.ID, errors.New(first.Detail))
		case !failed && l.lost():
			failed, first = true, l
		}
	}
	return failed, nil
}

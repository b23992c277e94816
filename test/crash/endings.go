package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
)

// endings is a task: the ends of many runs.
type endings struct {
	Dir      string // has the log of the i-th run as i.log
	Clean    string // path of the log of the run without failures; "" for none
	Seed     uint64
	Runs     int
	From, To int
	Whats    []string // what happened in each
}

func (e endings) part() (string, int) { return partEndings, e.Runs }

func (e endings) between(from, to int) any {
	e.From, e.To = from, to
	return e
}

func (e endings) keep(run int, wrong string) error {
	return fmt.Errorf("%s: %s: %s", logOf(e.Dir, run), e.Whats[run], wrong)
}

// checkEndings checks what the runs have left: as it is, and after power cuts.
func checkEndings(e endings) error {
	var clean *truth
	if e.Clean != "" {
		log, err := readLog(e.Clean)
		if err != nil {
			return err
		}
		if clean, err = truthOf(log, nil); err != nil {
			return err
		}
	}
	for i := e.From; i < e.To; i++ {
		err := find(i, func() (kind, verdict string, err error) { return e.check(i, clean) })
		if err != nil {
			return err
		}
	}
	return nil
}

// maxEndings is how many power cuts are tried at the end of a run.
const maxEndings = 12

// check returns whether the store failed in the run, or went on.
func (e endings) check(run int, clean *truth) (kind, verdict string, err error) {
	log, err := readLog(logOf(e.Dir, run))
	if err != nil {
		return "", "", err
	}
	t, err := truthOf(log, clean)
	if err != nil {
		return "", "", err
	}
	failed, err := silentAfterFailure(log)
	if err != nil {
		return "", "", err
	}
	random := rand.New(rand.NewPCG(e.Seed, uint64(run)))
	d := newDiskModel()
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

// silentAfterFailure reports whether the store has failed. It is an error if it answered anything
// after that: such an answer could be lost.
func silentAfterFailure(log []entry) (failed bool, err error) {
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

package crash

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"regent/leadership"
	"regent/store/file"
)

// The verdicts on an image that are no failure.
const (
	whole          = "whole"            // it has exactly what it must have
	refusedAtOpen  = "refused at open"  // by name
	refusedAtRead  = "refused at read"  // by name, in part; the rest is what it must be
	refusedAtWrite = "refused at write" // by name, and nothing works from then on
)

// check opens an image as a user of the store does, and compares it with the truth. Only a damaged
// image may be refused.
func (t *truth) check(path string, p plan, otherBoot bool) (verdict string, err error) {
	clock := startClock(t.clock(p))
	machine := file.Clock{BootID: boot, SinceBoot: clock.now}
	if otherBoot {
		machine.BootID = "another-boot"
	}
	store, err := file.Open(path, file.Config{Clock: machine, History: history})
	switch {
	case err == nil:
	case p.Damage == nil:
		return "", fmt.Errorf("the file is refused: %w", err)
	case !strings.Contains(err.Error(), path):
		return "", fmt.Errorf("the file is refused, but not by name: %w", err)
	case strings.Contains(err.Error(), "freepages"): // which goes on looking
		return "", fmt.Errorf("the file is refused too late: %w", err)
	default:
		return refusedAtOpen, nil
	}
	defer store.Close()
	s, err := see(store, t.views[len(t.views)-1].elections)
	if err != nil {
		return "", err
	}
	if len(s.refusals) > 0 && p.Damage == nil {
		return "", s.refusals[0]
	}
	err = t.hold(store, s, p, otherBoot)
	switch {
	case p.Damage != nil && errors.Is(err, leadership.OutcomeUnknown) && strings.Contains(err.Error(), "the file is damaged"):
		return refusedAtWrite, nil
	case err != nil:
		return "", err
	case len(s.refusals) > 0:
		return refusedAtRead, nil
	}
	return whole, nil
}

// hold compares what an image says, and what it grants, with the truth.
func (t *truth) hold(store *file.Store, s *seen, p plan, otherBoot bool) error {
	least, most := t.span(p)
	n, err := t.find(s, least, most, otherBoot)
	if err != nil {
		return err
	}
	if err := t.announced(s, p, n); err != nil {
		return err
	}
	last, late := t.instant(least), s.now
	if otherBoot {
		late = t.anchor.Add(t.clock(p))
	}
	return t.views[n].challenge(store, s, otherBoot, last, late)
}

// find returns after how many commits the store was as it is in the image: from least to most.
func (t *truth) find(s *seen, least, most int, otherBoot bool) (n int, err error) {
	for i := most; i >= least; i-- {
		why := t.views[i].compare(s, otherBoot)
		if why == nil {
			return i, nil
		}
		err = cmp.Or(err, why)
	}
	return 0, fmt.Errorf("the store is not as it was after any of its commits %d to %d: %w", least, most, err)
}

// instant is when the n-th commit was.
func (t *truth) instant(n int) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return t.commits[n-1].at
}

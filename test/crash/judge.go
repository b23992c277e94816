package crash

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"regent/leadership"
	"regent/store/bolt"
)

// The verdicts on an image that are no failure.
const (
	whole          = "whole"            // it has exactly what it must have
	refusedAtOpen  = "refused at open"  // by name
	refusedAtRead  = "refused at read"  // by name, in part; the rest is what it must be
	refusedAtWrite = "refused at write" // by name, and nothing works from then on
)

// aWhile is longer than bbolt goes on looking at a file of this size.
const aWhile = 20 * time.Millisecond

// judge opens an image as a store's user does and holds it to the truth. An image may be refused only if it is damaged.
func (t *truth) judge(path string, p plan, otherBoot, strict bool) (verdict string, err error) {
	clock := startClock(t.clock(p))
	machine := bolt.Clock{BootID: boot, SinceBoot: clock.now}
	if otherBoot {
		machine.BootID = "another-boot"
	}
	store, err := bolt.Open(path, bolt.Config{Clock: machine, History: history})
	switch {
	case err == nil:
	case p.Damage == nil:
		return "", fmt.Errorf("it is refused: %w", err)
	case !strings.Contains(err.Error(), path):
		return "", fmt.Errorf("it is refused, and not by name: %w", err)
	case lingers(err.Error()) && strict:
		return "", fmt.Errorf("it is refused too late: %w", err)
	case lingers(err.Error()):
		time.Sleep(aWhile) // if the process comes to an end of it, it is known which image did that
		return "unnoticed, " + aftermath, nil
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
	if p.Damage != nil {
		if what, known := unnoticed(*p.Damage, err); known && !strict {
			return "unnoticed, " + string(what), nil
		}
		if errors.Is(err, leadership.OutcomeUnknown) && strings.Contains(err.Error(), "the file is damaged") {
			return refusedAtWrite, nil
		}
	}
	if err != nil {
		return "", err
	}
	if len(s.refusals) > 0 {
		return refusedAtRead, nil
	}
	return whole, nil
}

// hold holds what an image says, and what it grants, to the truth.
func (t *truth) hold(store *bolt.Store, s *seen, p plan, otherBoot bool) error {
	least, most := t.span(p)
	n, err := t.find(s, least, most, otherBoot)
	if err == nil {
		err = t.announced(s, p, n)
	}
	if err != nil && !harmless(err) {
		return err
	}
	last, late := t.instant(least), s.now
	if otherBoot {
		late = t.anchor.Add(t.clock(p))
	}
	return cmp.Or(t.views[n].challenge(store, s, otherBoot, last, late), err)
}

// find returns after how many commits the store was as it is in the image: it must have been so after one of least to most. If it
// was not, but is as far as anything is granted on it, find also returns after how many that is so.
func (t *truth) find(s *seen, least, most int, otherBoot bool) (n int, err error) {
	for i := most; i >= least; i-- {
		why := t.views[i].compare(s, otherBoot)
		if why == nil {
			return i, nil
		}
		if err == nil || harmless(why) && !harmless(err) {
			n, err = i, why
		}
	}
	return n, fmt.Errorf("it is not the store after any of its commits %d to %d: %w", least, most, err)
}

// instant is when the n-th commit was.
func (t *truth) instant(n int) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return t.commits[n-1].at
}

package crash

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"regent/store/file"
)

// The verdicts on an image that are no failure.
const (
	whole   = "whole"   // it has exactly what it must have
	refused = "refused" // by name
)

// check opens an image as a user of the store does, and compares it with the truth. Only a damaged
// image may be refused.
func (t *truth) check(path string, p plan, otherBoot bool) (verdict string, err error) {
	clock := startClock(t.clock(p))
	machine := file.Clock{BootID: boot, SinceBoot: clock.now}
	if otherBoot {
		machine.BootID = "another-boot"
	}
	_, looked := file.Check(path)
	if errors.Is(looked, fs.ErrNotExist) {
		looked = nil // nothing is in the folder yet, and Open makes a store
	}
	store, err := file.Open(path, file.Config{Clock: machine, History: history})
	switch {
	case (err == nil) != (looked == nil):
		return "", fmt.Errorf("it is opened with the error %w, and its verification has the error %w", err, looked)
	case err == nil:
	case p.Damage == nil:
		return "", fmt.Errorf("the folder is refused: %w", err)
	case !strings.Contains(err.Error(), path) || !namesFile(err.Error()) || strings.Contains(err.Error(), "\n"):
		return "", fmt.Errorf("the folder is refused, but not by name: %w", err)
	default:
		return refused, nil
	}
	defer store.Close()
	s, err := see(store, t.views[len(t.views)-1].elections)
	if err != nil {
		return "", err
	}
	return whole, t.hold(store, s, p, otherBoot)
}

// namesFile reports whether the text names a file of a store.
func namesFile(text string) bool {
	return strings.Contains(text, ": log-") || strings.Contains(text, ": snapshot-") || strings.Contains(text, ": state: ")
}

// hold compares what an image says, and what it grants, with the truth.
func (t *truth) hold(store *file.Store, s *seen, p plan, otherBoot bool) error {
	least, most := t.span(p)
	n, err := t.find(s, least, most, otherBoot)
	if err != nil {
		return err
	}
	if err := errors.Join(t.announced(s, p, n), t.journals(store, p)); err != nil {
		return err
	}
	last, late := t.instant(least), s.now
	if otherBoot {
		late = t.anchor.Add(t.clock(p))
	}
	return t.views[n].challenge(store, otherBoot, last, late)
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

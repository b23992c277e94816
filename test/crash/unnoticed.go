package crash

import (
	"errors"
	"fmt"
	"strings"
)

// aspect is what of a store is not as it must be.
type aspect string

// The aspects, the least harmful first: a flaw in one of the first three grants nothing.
const (
	listing       aspect = "list"          // an election is listed that there never was
	announcements aspect = "announcements" // an event is not announced, or once more
	past          aspect = "history"       // events are missing
	present       aspect = "record"        // who leads, for how long, with which token
)

// flaw is a difference between what must be and what is seen.
type flaw struct {
	aspect aspect
	text   string
}

func (f *flaw) Error() string { return f.text }

func differs(a aspect, format string, args ...any) error {
	return &flaw{a, fmt.Sprintf(format, args...)}
}

// harmless says whether the error is a flaw that nothing is granted on.
func harmless(err error) bool {
	f, ok := errors.AsType[*flaw](err)
	return ok && f.aspect != present
}

// How the store is known to bring a process down that opens a damaged file.
const (
	// aftermath: the file was refused, and bbolt goes on looking at it, beside the one who asked, and dies of it, for it is closed.
	aftermath = "aftermath"
	// unguarded: bbolt panics as the store begins another boot.
	unguarded = "unguarded"
)

// lingers says whether the error, or the last words of a process, are of what bbolt goes on looking at.
func lingers(words string) bool {
	return strings.Contains(words, "freepages") || strings.Contains(words, "bbolt.(*Tx).recursivelyCheck")
}

// fatal says whether the last words of a process are of one of these.
func fatal(words string) (why string, known bool) {
	if lingers(words) {
		return aftermath, true
	}
	return unguarded, strings.Contains(words, "bolt.prepare")
}

// unnoticed says whether the store is known not to notice damage of that sort, and what it then gets wrong. It keeps a checksum of
// each value, none of which values there are: so it does not notice that one is gone from where it looks only for what there is,
// nor that a page holds what it held before. A record or a lease that is wrong for any other cause is never forgiven.
func unnoticed(d damage, err error) (aspect, bool) {
	f, ok := errors.AsType[*flaw](err)
	if !ok || f.aspect == present && d.Sort != outdated {
		return "", false
	}
	return f.aspect, true
}

package view

import "regent/leadership"

// Head returns the last known index of the election's journal.
func (e *Election) Head() leadership.Index { return e.journal }

// Appended notes that a journal has reached an index. It reports whether that is news; it ignores
// an election that is not remembered.
func (v *View) Appended(name leadership.Election, i leadership.Index) (news bool) {
	e, ok := v.elections[name]
	if news = ok && i > e.journal; news {
		e.journal = i
	}
	return news
}

// HeadRead notes the head of the journal that the store returned to a read that began when the
// known index was before. A higher known index was invented, or is void after a restore.
func (e *Election) HeadRead(i, before leadership.Index) {
	if i > e.journal || e.journal == before {
		e.journal = i
	}
}

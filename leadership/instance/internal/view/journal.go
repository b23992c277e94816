package view

import "regent/leadership"

// Head is the index of the last entry of the election's journal, as far as is known.
func (e *Election) Head() leadership.Index { return e.journal }

// Appended takes the news that a journal has come to an index. It reports whether that is news. Of
// an election that is not remembered, nothing is.
func (v *View) Appended(name leadership.Election, i leadership.Index) (news bool) {
	e, ok := v.elections[name]
	if news = ok && i > e.journal; news {
		e.journal = i
	}
	return news
}

// HeadRead takes the store's word on the head of the journal, to a question that was asked when it
// was known as before. What was known and is more was made up, or is void by a restore.
func (e *Election) HeadRead(i, before leadership.Index) {
	if i > e.journal || e.journal == before {
		e.journal = i
	}
}

package line

import (
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/view"
)

// Lines is how many lines there are.
func (q *Queue) Lines() (n int) {
	q.c.Hub.View(func(*view.View, time.Duration) { n = len(q.lines) })
	return n
}

// Callers is how many calls wait for the election.
func (q *Queue) Callers(e leadership.Election) (n int) {
	q.look(e, func(l *Line, _ time.Duration) { n = l.callers })
	return n
}

// Kept is how many places without a caller there are in the line.
func (q *Queue) Kept(e leadership.Election) (n int) {
	q.c.Hub.View(func(*view.View, time.Duration) { n = q.lines[e].line.kept })
	return n
}

// Barred is how many candidates the line remembers to be barred by themselves.
func (q *Queue) Barred(e leadership.Election) (n int) {
	q.look(e, func(l *Line, _ time.Duration) { n = len(l.bars.own) })
	return n
}

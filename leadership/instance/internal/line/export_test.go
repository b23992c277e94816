package line

import "regent/leadership"

// Lines is how many lines there are.
func (q *Queue) Lines() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.lines)
}

// Callers is how many calls wait for the election.
func (q *Queue) Callers(e leadership.Election) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l, ok := q.lines[e]; ok {
		return l.line.Callers()
	}
	return 0
}

// Kept is how many places without a caller there are in the line.
func (q *Queue) Kept(e leadership.Election) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lines[e].line.Kept()
}

package members

import (
	"math"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/view"
)

const (
	// logged is how long changes are kept for the watchers, which are woken at once: up to twice as
	// long, and no more than maxLog of one election. A watcher that asks later misses some.
	logged = time.Minute
	maxLog = leadership.MaxMembers
)

// Watch keeps the changes of an election from now on. Unwatch ends that.
func (r *Registry) Watch(name leadership.Election) { r.election(name).watchers++ }

// Unwatch ends a Watch.
func (r *Registry) Unwatch(name leadership.Election) {
	e := r.elections[name]
	if e.watchers--; e.watchers == 0 {
		e.first += uint64(len(e.log))
		e.log = nil
		r.tidy(e)
	}
}

// Writing returns, as a change, whether the leader of a watched election may write. It returns
// nothing if no leader is known, or if there is no quorum policy.
func (r *Registry) Writing(name leadership.Election, now time.Duration) []leadership.MemberChange {
	e := r.elections[name]
	var l *view.Lease
	r.view(func(*view.View, time.Duration) { l = e.governed() })
	if l == nil {
		return nil
	}
	c := r.writing(l, now)
	if e.watchers == 1 {
		e.writing = c
	}
	if c.ID == "" {
		return nil
	}
	return []leadership.MemberChange{c}
}

// governed is lease, but also nil if there is and was no quorum policy. Call it within View.
func (e *election) governed() *view.Lease {
	last := e.known.Last()
	if last == nil || last.Config.Ballot.Quorum.Electorate == "" && e.writing.ID == "" {
		return nil
	}
	return e.lease()
}

// writing returns, as a change, whether the leader may write; the zero change if there is no
// leader.
func (r *Registry) writing(l *view.Lease, now time.Duration) (c leadership.MemberChange) {
	if l.LeaderID == "" {
		return c
	}
	c = leadership.MemberChange{ID: l.LeaderID, Role: leadership.RoleLeader, Change: leadership.MemberWritable, SeenToken: l.Token}
	if q := l.Config.Ballot.Quorum; q.Needed() > 0 {
		if _, lost := r.quorum(l.Election, q, l.LeaderID, now); readOnly(l.Lease, lost, now-l.Asked) {
			c.Change = leadership.MemberReadOnly
		}
	}
	return c
}

// tellWriting tells the watchers of changes whether leaders may write. For a new leader it tells
// only that it must not.
func (r *Registry) tellWriting(now time.Duration) {
	var all []*view.Lease
	r.view(func(*view.View, time.Duration) {
		for _, e := range r.elections {
			if e.watchers == 0 {
				continue
			}
			if l := e.governed(); l != nil {
				all = append(all, l)
			}
		}
	})
	for _, l := range all {
		e, c := r.elections[l.Election], r.writing(l, now)
		if c.Change != e.writing.Change && (c.Change == leadership.MemberReadOnly || c.ID != "" && c.ID == e.writing.ID) {
			r.write(e, c)
		}
		e.writing = c
	}
}

// Newest, as the from of Changes, returns no changes.
const Newest = math.MaxUint64

// Changes returns the changes of a watched election from that number on, and the from of the next
// call. They are shared and must not be changed.
func (r *Registry) Changes(name leadership.Election, from uint64) (changes []leadership.MemberChange, next uint64) {
	e := r.elections[name]
	next = e.first + uint64(len(e.log))
	from = min(max(from, e.first), next)
	return e.log[from-e.first : len(e.log) : len(e.log)], next
}

// write logs a change for the watchers.
func (r *Registry) write(e *election, c leadership.MemberChange) {
	if e.watchers == 0 {
		return
	}
	r.touched[e.name] = true
	e.log = append(e.log, c)
	if over := len(e.log) - maxLog; over > 0 {
		e.log, e.first = e.log[over:], e.first+uint64(over)
	}
}

// touch notes that the members of an election have changed in any way.
func (r *Registry) touch(e *election) {
	if _, ok := r.touched[e.name]; !ok {
		r.touched[e.name] = false
	}
}

// Touched returns the elections whose members have changed in any way since its last call, and
// whether Changes has new changes of them.
func (r *Registry) Touched() map[leadership.Election]bool {
	touched := r.touched
	if len(touched) > 0 {
		r.touched = make(map[leadership.Election]bool)
	}
	return touched
}

// cutLogs drops old changes; see logged.
func (r *Registry) cutLogs(now time.Duration) {
	if now < r.cutAt {
		return
	}
	r.cutAt = now + logged
	for _, e := range r.elections {
		if e.recent > e.first {
			e.log, e.first = e.log[e.recent-e.first:], e.recent
		}
		e.recent = e.first + uint64(len(e.log))
	}
}

package checker

import (
	"hash/maphash"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"regent/leadership"
)

// MaxUnknown is how many calls of one election may have an unknown outcome, for Free.
const MaxUnknown = 64

// Free is Linear without the history: it goes by the answers alone, so that a history which was written to fit does not help. A call whose
// outcome is unknown was done or was not, at any time after it was asked for; a lease that was over was recorded as expired or was not. The
// answers decide, by the revisions that they show. It is for short recordings, of a few hundred calls with few that are unknown, and all that was
// called must be recorded. More than MaxUnknown of them are a violation, Undecided.
func Free(r Recording, guard time.Duration) Report {
	var report Report
	for _, p := range plotsOf(truth{}, r) {
		f := &free{plot: p, guard: guard}
		if f.gather(); len(f.wild) > MaxUnknown {
			report.accuse(Undecided, "election %q: %d calls with an unknown outcome", p.election, len(f.wild))
			continue
		}
		report.Checked += len(p.steps)
		p.back = guard
		ops, err := p.order()
		if err != nil {
			report.accuse(Illegal, "election %q: %v", p.election, err)
			continue
		}
		m := f.model()
		switch porcupine.CheckOperationsTimeout(m, ops, Patience) {
		case porcupine.Unknown:
			report.accuse(Undecided, "election %q: no order of %d steps was found in %v", p.election, len(p.steps), Patience)
		case porcupine.Illegal:
			report.accuse(Illegal, "election %q, by the answers alone: %s", p.election, p.stuck(m, ops))
		}
	}
	return report
}

// free is a plot without a history.
type free struct {
	*plot
	guard time.Duration
	wild  []Call      // those that may have left an event
	beats []time.Time // all heartbeats that were shown
}

func (f *free) gather() {
	f.unwritten = true
	for _, c := range f.calls {
		if a := c.Answer; a != nil && a.State == leadership.Held {
			f.beats = append(f.beats, a.LastHeartbeat)
		}
		if told := c.refused() || c.done() && c.Answer != nil; !told && c.Verb != Renew && c.Verb != Check && c.Verb != Get {
			c.Code, c.Answer = "", nil
			f.wild = append(f.wild, c)
		}
	}
	slices.SortFunc(f.beats, time.Time.Compare)
	f.beats = slices.CompactFunc(f.beats, time.Time.Equal)
}

// model tries, before each step, all that may have been done and that nobody was told of.
func (f *free) model() porcupine.Model {
	seed := maphash.MakeSeed()
	m := porcupine.NondeterministicModel{
		Init:              func() []any { return []any{f.begin()} },
		Step:              func(before, input, _ any) []any { return f.step(before.(state), input.(step)) },
		Equal:             func(a, b any) bool { return a.(state) == b.(state) },
		Hash:              func(s any) uint64 { return maphash.Comparable(seed, s.(state)) },
		DescribeOperation: func(input, _ any) string { return input.(step).String() },
		DescribeState:     func(s any) string { return s.(state).String() },
	}
	return m.ToModel()
}

func (f *free) step(before state, in step) []any {
	var after []any
	for _, s := range f.meanwhile(before, in) {
		if s, ok := f.take(s, in, f.guard); ok {
			after = append(after, s)
		}
	}
	return after
}

// meanwhile is all that the election may have become before the step, as far as its answer goes. Whatever is done unseen raises the revision.
func (f *free) meanwhile(s state, in step) []state {
	states := []state{s}
	if in.answer == nil {
		return states
	}
	for i := 0; i < len(states); i++ {
		if s := states[i]; s.record.Revision < in.answer.Revision {
			states = append(states, f.unseen(s, in)...)
		}
	}
	return states
}

// unseen is what one more change makes of the election.
func (f *free) unseen(s state, in step) []state {
	var states []state
	if r := s.record; r.LeaderID != "" && !(leadership.Snapshot{Record: r, Now: in.at}).Live() {
		over := step{events: []leadership.Event{{Type: leadership.EventExpired, RequestID: "any"}}, at: later(s.now, r.LeaseEnd())}
		states = f.done(states, s, over)
	}
	for i, c := range f.wild {
		if s.done&(1<<i) != 0 || c.Asked > in.span.until {
			continue
		}
		s := s
		s.done |= 1 << i
		for _, at := range f.moments(s, c, in) {
			states = f.done(states, s, step{call: c, at: at})
		}
	}
	return states
}

// done adds what the step makes of s, if it changes anything.
func (f *free) done(states []state, s state, unseen step) []state {
	after, ok := f.try(s, unseen, f.guard)
	if !ok || after.record.Revision == s.record.Revision || slices.Contains(states, after) {
		return states
	}
	return append(states, after)
}

// moments are the times at which a call may have been done without anybody being told: at once, or as soon as it was allowed; or, for a grant, at
// one that somebody was shown.
func (f *free) moments(s state, c Call, in step) []time.Time {
	moments := []time.Time{s.now}
	if c.Verb != Acquire {
		return moments
	}
	r := s.record
	if r.LeaderID != "" {
		moments = append(moments, r.LeaseEnd().Add(r.Policy.LockDelay+f.guard))
	} else if r.LockFor > 0 {
		moments = append(moments, r.EndedAt.Add(r.LockFor))
	}
	from, _ := slices.BinarySearchFunc(f.beats, s.now, time.Time.Compare)
	to, _ := slices.BinarySearchFunc(f.beats, in.at.Add(1), time.Time.Compare)
	moments = append(moments, f.beats[from:max(from, to)]...)
	return slices.DeleteFunc(moments, func(t time.Time) bool { return t.Before(s.now) || t.After(in.at) })
}

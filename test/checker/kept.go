package checker

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"regent/leadership"
)

// RC checks that everything callers were told is in the history that was read at the end, after
// every crash: each revision that an answer shows is there, with its token and its leader; and no
// answer shows a lower revision, a lower token or an earlier heartbeat than one that was given
// before it was asked for.
func RC(r Recording) Report {
	truth, report := truthOf(r.History)
	views := make(map[leadership.Election][]Call)
	for _, c := range r.Calls {
		if c.Answer == nil || c.Answered == Forever {
			continue
		}
		report.Checked++
		checkKept(&report, c, truth)
		if c.shows() {
			views[c.Election] = append(views[c.Election], c)
		}
	}
	for _, e := range slices.Sorted(maps.Keys(views)) {
		checkForward(&report, views[e])
	}
	return report
}

func checkKept(report *Report, c Call, t truth) {
	a := c.Answer
	if a.Revision == 0 {
		return
	}
	event, ok := t.event(c.Election, a.Revision)
	switch {
	case !ok:
		report.add(Forgotten, "%v: the history ends at revision %d", c, len(t[c.Election]))
	case a.Token != event.Token, a.State == leadership.Held && (a.LeaderID == "" || a.LeaderID != event.LeaderID):
		report.add(Forgotten, "%v: the history has %s", c, shown(event))
	}
}

// progress is how far an answer shows an election to be.
type progress struct {
	revision leadership.Revision
	token    leadership.Token
	beat     time.Time // the last heartbeat of the token; zero if the answer does not show it
}

func (c Call) progress() progress {
	return progress{c.Answer.Revision, c.Answer.Token, c.Answer.LastHeartbeat}
}

// below names the values that are lower in h.
func (h progress) below(other progress) string {
	switch {
	case h.revision < other.revision:
		return "revision"
	case h.token < other.token:
		return "token"
	case h.token == other.token && !h.beat.IsZero() && h.beat.Before(other.beat):
		return "heartbeat"
	}
	return ""
}

func (h progress) highest(other progress) progress {
	if other.token > h.token || other.token == h.token && other.beat.After(h.beat) {
		h.beat = other.beat
	}
	h.revision, h.token = max(h.revision, other.revision), max(h.token, other.token)
	return h
}

// checkForward checks that no answer shows less than one that was given before it was asked for.
func checkForward(report *Report, asked []Call) {
	answered := slices.Clone(asked)
	slices.SortStableFunc(asked, func(a, b Call) int { return cmp.Compare(a.Asked, b.Asked) })
	slices.SortStableFunc(answered, func(a, b Call) int { return cmp.Compare(a.Answered, b.Answered) })
	var seen progress
	for _, c := range asked {
		for len(answered) > 0 && answered[0].Answered < c.Asked {
			seen, answered = seen.highest(answered[0].progress()), answered[1:]
		}
		if what := c.progress().below(seen); what != "" {
			report.add(RolledBack, "%v: its %s is lower than one that was shown before: %d, %d, %s", c, what, seen.revision, seen.token, stamp(seen.beat))
		}
	}
}

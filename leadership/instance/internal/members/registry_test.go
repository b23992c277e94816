package members_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/instance/internal/members"
	"regent/leadership/instance/internal/view"
)

const jobs leadership.Election = "jobs"

// world is some registries, and the clock that all of them are told.
type world struct {
	*testing.T
	now   time.Duration
	all   []*members.Registry
	views map[*members.Registry]*view.View
}

func newWorld(t *testing.T) *world {
	t.Parallel()
	return &world{T: t, now: time.Hour, views: make(map[*members.Registry]*view.View)}
}

// registry returns a registry that begins now.
func (w *world) registry(name string) *members.Registry {
	v := view.New(view.Config{Live: true})
	r := members.New(name, func(do func(*view.View, time.Duration)) { do(v, w.now) }, w.now)
	w.all = append(w.all, r)
	w.views[r] = v
	return r
}

// term lets the view of a registry hear who leads.
func (w *world) term(r *members.Registry, leader leadership.CandidateID, token leadership.Token) {
	v := w.views[r]
	e := leadership.Event{Election: jobs, Revision: v.Newest(jobs) + 1, Type: leadership.EventAcquired, LeaderID: leader, Token: token}
	if leader == "" {
		e.Type = leadership.EventReleased
	}
	v.Heard(e, w.now)
	r.Notice(w.now, jobs)
}

// pass lets time pass, second by second.
func (w *world) pass(d time.Duration) {
	for end := w.now + d; w.now < end; {
		w.now = min(w.now+time.Second, end)
		for _, r := range w.all {
			r.Tick(w.now)
		}
	}
}

func (w *world) join(r *members.Registry, id leadership.CandidateID, role leadership.Role, seen leadership.Token) {
	w.Helper()
	j := leadership.JoinRequest{Election: jobs, CandidateID: id, Role: role, TTL: 30 * time.Second, SeenToken: seen}
	require.NoError(w, r.Join(j, w.now))
}

// send lets one registry hear sheets of another.
func (w *world) send(to *members.Registry, sheets ...[]byte) {
	w.Helper()
	for _, s := range sheets {
		_, err := to.Hear(s, w.now)
		require.NoError(w, err, s)
	}
}

// tell sends what has changed at one registry to another.
func (w *world) tell(from, to *members.Registry) {
	w.Helper()
	w.send(to, from.ChangedSheets(nil, w.now)...)
}

// held is the election as its leader holds it.
func held(leader leadership.CandidateID, token leadership.Token) leadership.Lease {
	at := time.Unix(1000, 0)
	return leadership.Lease{
		Election: jobs, State: leadership.Held, LeaderID: leader, Token: token, Revision: 1,
		AcquiredAt: at.Add(-time.Hour), LastHeartbeat: at, ReadAt: at,
	}
}

// members are those of a registry, as "id role token".
func (w *world) members(r *members.Registry, l leadership.Lease) []string {
	all := []string{}
	for _, m := range r.Members(l, 0, w.now) {
		all = append(all, fmt.Sprintf("%s %s %d", m.ID, m.Role, m.SeenToken))
	}
	return all
}

func (w *world) has(r *members.Registry, what string, want ...string) {
	w.Helper()
	assert.Empty(w, cmp.Diff(append([]string{}, want...), w.members(r, leadership.Lease{Election: jobs})), "%s: the members (-want +got)", what)
}

func TestAMemberCountsUntilItsTTLHasPassed(t *testing.T) {
	w := newWorld(t)
	r := w.registry("a")
	w.join(r, "fay", leadership.RoleFollower, 7)
	w.pass(29 * time.Second)
	w.join(r, "fay", leadership.RoleFollower, 8)
	w.pass(29 * time.Second)
	w.has(r, "it has joined again", "fay follower 8")
	w.pass(time.Second)
	w.has(r, "its ttl has passed")
	w.join(r, "wes", leadership.RoleWorker, 0)
	r.Leave(jobs, "wes", w.now)
	r.Leave(jobs, "wes", w.now)
	w.has(r, "it has left")
}

func TestTheReaderOfAStreamFollowsWhatItWasSent(t *testing.T) {
	w := newWorld(t)
	r := w.registry("a")
	for range 2 {
		require.NoError(t, r.Open(jobs, "fay", 3, w.now))
	}
	r.Seen(jobs, "fay", 5, w.now)
	r.Seen(jobs, "fay", 4, w.now)
	w.pass(time.Hour)
	r.Close(jobs, "fay", w.now)
	w.pass(time.Hour)
	w.has(r, "one of its streams is open", "fay follower 5")
	r.Close(jobs, "fay", w.now)
	w.pass(members.Linger - time.Second)
	w.has(r, "it may come back at once", "fay follower 5")
	w.pass(time.Second)
	w.has(r, "it has not come back")
}

func TestThoseInLineFollowTheTokenThatTheirInstanceKnows(t *testing.T) {
	w := newWorld(t)
	a, b := w.registry("a"), w.registry("b")
	line := []members.Stander{{CandidateID: "ann", Role: leadership.RoleCandidate, Position: 1}, {CandidateID: "wit", Role: leadership.RoleWitness}}
	a.Stand(jobs, line, w.now)
	w.term(a, "lea", 7)
	w.tell(a, b)
	for _, r := range []*members.Registry{a, b} {
		assert.Empty(t, cmp.Diff([]string{"ann candidate 7", "lea leader 7", "wit witness 7"}, w.members(r, held("lea", 7))), "the members (-want +got)")
	}
	w.term(a, "leo", 8)
	sheets := a.ChangedSheets(nil, w.now)
	if len(sheets) != 1 || len(sheets[0]) > 200 {
		t.Errorf("a new token is told by %d sheets, of which the first is %s", len(sheets), sheets[0])
	}
	w.send(b, sheets...)
	assert.Empty(t, cmp.Diff([]string{"ann candidate 8", "leo leader 8", "wit witness 8"}, w.members(b, held("leo", 8))), "after the next grant (-want +got)")
	a.Stand(jobs, nil, w.now)
	w.tell(a, b)
	w.has(a, "the line is empty")
	w.has(b, "the line is empty")
}

func TestALeaderIsNoticedOfWhichTheViewHasHeard(t *testing.T) {
	w := newWorld(t)
	r := w.registry("")
	w.join(r, "fay", leadership.RoleFollower, 7)
	hear := func(e leadership.Event) {
		e.Election = jobs
		w.views[r].Heard(e, w.now)
		w.pass(time.Second)
	}
	hear(leadership.Event{Revision: 1, Type: leadership.EventAcquired, LeaderID: "lea", Token: 7})
	assert.EqualValues(t, 7, r.Token(jobs), "a second after the event the token")
	r.Leave(jobs, "fay", w.now)
	hear(leadership.Event{Revision: 2, Type: leadership.EventReleased, Token: 7})
	w.pass(members.Linger + leadership.MaxGrace)
	if n, known := r.Size().Elections, w.views[r].Elections(); n > 0 || known > 0 {
		t.Errorf("long after the last member has gone, %d elections are remembered, and %d in the view", n, known)
	}
}

func TestOneMemberMoreThanThereIsRoomForIsRefusedByName(t *testing.T) {
	w := newWorld(t)
	r := w.registry("")
	for n := range leadership.MaxMembers {
		if n%2 == 0 {
			w.join(r, leadership.CandidateID(fmt.Sprintf("n%d", n)), leadership.RoleFollower, 0)
		} else if err := r.Open(jobs, leadership.CandidateID(fmt.Sprintf("n%d", n)), 0, w.now); err != nil {
			t.Fatal(err)
		}
	}
	j := leadership.JoinRequest{Election: "other", CandidateID: "late", Role: leadership.RoleWorker, TTL: time.Minute}
	err := r.Join(j, w.now)
	if want := leadership.RefuseMember(j); err == nil || err.Error() != want.Error() || !errors.Is(err, leadership.LimitExceeded) {
		t.Errorf("member 10,001: %v, want %v", err, want)
	}
	assert.ErrorIs(t, r.Open("other", "late", 0, w.now), leadership.LimitExceeded, "stream 10,001")
	w.join(r, "n0", leadership.RoleWorker, 0) // it is one already
	assert.NoError(t, r.Open(jobs, "n0", 0, w.now), "a member that opens a stream")
	r.Leave(jobs, "n2", w.now)
	assert.NoError(t, r.Join(j, w.now), "after another has left")
}

// watch begins a watch, and returns the number of its next change.
func watch(r *members.Registry) uint64 {
	r.Watch(jobs)
	_, next := r.Changes(jobs, members.Newest)
	return next
}

// changes are those since the number, as "id role change", sorted.
func changes(r *members.Registry, from *uint64) []string {
	var news []leadership.MemberChange
	news, *from = r.Changes(jobs, *from)
	all := []string{}
	for _, c := range news {
		all = append(all, fmt.Sprintf("%s %s %s", c.ID, c.Role, c.Change))
	}
	slices.Sort(all)
	return all
}

func TestWatchersAreToldOnceWhoHasComeAndGone(t *testing.T) {
	w := newWorld(t)
	a, b := w.registry("a"), w.registry("b")
	w.join(a, "old", leadership.RoleWorker, 0)
	next := watch(a)
	told := func(what string, want ...string) {
		t.Helper()
		assert.Empty(t, cmp.Diff(append([]string{}, want...), changes(a, &next)), "%s (-want +got)", what)
	}
	told("nothing has happened")
	w.join(a, "fay", leadership.RoleFollower, 1)
	w.join(a, "fay", leadership.RoleWorker, 2)
	w.join(b, "fay", leadership.RoleWorker, 2)
	w.join(b, "bob", leadership.RoleWitness, 2)
	w.tell(b, a)
	told("two have come", "bob witness joined", "fay follower joined")
	a.Leave(jobs, "old", w.now)
	b.Leave(jobs, "bob", w.now)
	w.tell(b, a)
	told("two have left", "bob witness left", "old worker left")
	w.pass(31 * time.Second)
	told("the others are forgotten when their ttl has passed; at the other instance that is still to be told")
	w.tell(b, a)
	told("the last has vanished", "fay worker vanished")
	a.Stand(jobs, []members.Stander{{CandidateID: "ann", Role: leadership.RoleCandidate, Position: 1}}, w.now)
	a.Stand(jobs, nil, w.now)
	w.term(a, "ann", 3)
	told("a candidate comes, and leads", "ann candidate joined")
	w.term(a, "", 3)
	w.pass(members.Linger - time.Second)
	a.Stand(jobs, []members.Stander{{CandidateID: "ann", Role: leadership.RoleCandidate, Position: 1}}, w.now)
	told("its term ends, and it stands in line again")
	a.Stand(jobs, nil, w.now)
	w.pass(members.Linger)
	told("it does not ask again", "ann candidate left")
	a.Unwatch(jobs)
}

func TestQuorumIsLostForAsLongAsTooFewWerePresent(t *testing.T) {
	w := newWorld(t)
	r := w.registry("")
	l := held("n1", 7)
	l.Config.Ballot.Quorum = leadership.QuorumPolicy{Electorate: leadership.NewNames("n1", "n2", "n3"), Grace: 10 * time.Second}
	is := func(what string, present int, readOnly bool) {
		t.Helper()
		s := r.Status(l, r.Members(l, 0, w.now), 0, w.now)
		if s.Present != present || s.ReadOnly != readOnly {
			t.Errorf("%s: %d are present, and read-only is %v; want %d and %v", what, s.Present, s.ReadOnly, present, readOnly)
		}
	}
	is("the instance has just begun", 1, false)
	w.pass(11 * time.Second)
	is("the others never came", 1, true)
	w.join(r, "n2", leadership.RoleFollower, 7)
	is("one comes", 2, false)
	w.join(r, "n4", leadership.RoleFollower, 7)
	w.pass(30 * time.Second)
	is("it has just gone", 1, false)
	w.pass(10 * time.Second)
	is("for the grace time", 1, false)
	w.pass(time.Second)
	is("for longer", 1, true)
	w.join(r, "n3", leadership.RoleWitness, 7)
	is("a witness comes", 2, false)
	r.Leave(jobs, "n3", w.now)
	w.pass(5 * time.Second)
	is("and goes: the grace time begins anew", 1, false)
	w.pass(6 * time.Second)
	is("for longer", 1, true)
	l.AcquiredAt = l.ReadAt.Add(-9 * time.Second)
	is("while the leader was granted lately", 1, false)
	l.LeaderID, l.State = "", leadership.Vacant
	is("while there is no leader", 0, false)
}

// However many members of other elections come and go.
func TestAQuorumHasItsGraceWhoeverElseGoes(t *testing.T) {
	w := newWorld(t)
	r := w.registry("")
	w.pass(time.Minute)
	l := held("n1", 7)
	l.Config.Ballot.Quorum = leadership.QuorumPolicy{Electorate: leadership.NewNames("n1", "n2", "n3"), Grace: 10 * time.Second}
	w.join(r, "n2", leadership.RoleFollower, 7)
	w.views[r].Learn(&l, view.Read, w.now, w.now)
	for n := range 3 * leadership.MaxMembers {
		e := leadership.Election(fmt.Sprint("e", n%10))
		id := leadership.CandidateID(fmt.Sprint("n", n))
		require.NoError(t, r.Join(leadership.JoinRequest{Election: e, CandidateID: id, Role: leadership.RoleFollower, TTL: time.Minute}, w.now))
		r.Leave(e, id, w.now)
	}
	r.Leave(jobs, "n2", w.now)
	w.pass(5 * time.Second)
	if s := r.Status(l, r.Members(l, 0, w.now), 0, w.now); s.Present != 1 || s.ReadOnly {
		t.Errorf("%d are present, and read-only is %v; want one, within the grace time", s.Present, s.ReadOnly)
	}
}

// The store was read last before the leader was granted: the grace time counts from when that was
// heard of.
func TestANewLeaderMayWriteForTheGraceTime(t *testing.T) {
	w := newWorld(t)
	r := w.registry("")
	r.Watch(jobs)
	defer r.Unwatch(jobs)
	l := leadership.Lease{Election: jobs, State: leadership.Vacant, Token: 6, Revision: 1, ReadAt: time.Unix(1000, 0)}
	l.Config.Ballot.Quorum = leadership.QuorumPolicy{Electorate: leadership.NewNames("n1", "n2", "n3"), Grace: 10 * time.Second}
	w.views[r].Learn(&l, view.Read, w.now, w.now)
	next := uint64(0)
	told := func(what string, want ...leadership.MemberChangeType) {
		t.Helper()
		var got []leadership.MemberChangeType
		var changes []leadership.MemberChange
		for changes, next = r.Changes(jobs, next); len(changes) > 0; changes = changes[1:] {
			if c := changes[0].Change; c == leadership.MemberReadOnly || c == leadership.MemberWritable {
				got = append(got, c)
			}
		}
		assert.Equal(t, want, got, what)
	}
	w.pass(time.Minute)
	w.term(r, "n1", 7)
	w.pass(10 * time.Second)
	told("for the grace time")
	w.pass(time.Second)
	told("for longer", leadership.MemberReadOnly)
	w.join(r, "n2", leadership.RoleFollower, 7)
	w.pass(time.Second)
	told("another comes", leadership.MemberWritable)
	r.Leave(jobs, "n2", w.now)
	w.pass(11 * time.Second)
	told("it goes", leadership.MemberReadOnly)
	w.term(r, "", 7)
	w.pass(time.Second)
	w.term(r, "n2", 8)
	w.pass(5 * time.Second)
	told("another leads, which was not told that it must not write")
}

// A principal, and an election, get half of the members that an instance remembers.
func TestMembersAreShared(t *testing.T) {
	w := newWorld(t)
	r := w.registry("")
	join := func(principal string, e leadership.Election, n int) error {
		j := leadership.JoinRequest{Election: e, CandidateID: leadership.CandidateID(fmt.Sprintf("n%d", n)), Role: leadership.RoleFollower, TTL: 30 * time.Second}
		return r.As(principal, e, j.CandidateID, func() error { return r.Join(j, w.now) })
	}
	refused := func(what string, err error) {
		t.Helper()
		assert.ErrorIs(t, err, leadership.LimitExceeded, what)
	}
	const half = leadership.MaxMembers / 2
	for n := range half {
		require.NoError(t, join("ann", leadership.Election(fmt.Sprintf("e%d", n%7)), n))
	}
	refused("a principal's member beyond half", join("ann", "other", half))
	refused("a stream of it", r.As("ann", "other", "n", func() error { return r.Open("other", "n", 0, w.now) }))
	assert.NoError(t, join("ann", "e0", 0), "a member that joins again")
	assert.NoError(t, join("bob", "other", 0), "another principal")
	w.pass(time.Minute)
	for n := range half {
		require.NoError(t, join(fmt.Sprintf("p%d", n%7), "crowded", n), "after all have gone")
	}
	refused("an election's member beyond half", join("cyd", "crowded", half))
	refused("one without a principal", join("", "crowded", half))
	assert.NoError(t, join("cyd", "other", 0), "another election")
	r.Leave("crowded", "n1", w.now)
	assert.NoError(t, join("cyd", "crowded", half), "after one has left")
}

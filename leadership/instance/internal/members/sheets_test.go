package members_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/instance/internal/members"
)

func TestChangesAreToldOnceAndOnlyChanges(t *testing.T) {
	w := newWorld(t)
	a, b := w.registry("a"), w.registry("b")
	w.join(a, "fay", leadership.RoleFollower, 1)
	w.join(a, "gus", leadership.RoleFollower, 1)
	w.tell(a, b)
	w.has(b, "two have joined", "fay follower 1", "gus follower 1")
	w.join(a, "gus", leadership.RoleFollower, 1) // its heartbeat is no change
	if sheets := a.ChangedSheets(nil, w.now); len(sheets) > 0 {
		t.Errorf("nothing has changed, and this is told: %s", sheets)
	}
	w.join(a, "gus", leadership.RoleFollower, 2)
	a.Leave(jobs, "fay", w.now)
	sheets := a.ChangedSheets(nil, w.now)
	w.send(b, sheets...)
	w.send(b, sheets...) // again
	w.has(b, "one has left, one follows another token", "gus follower 2")
	w.pass(31 * time.Second)
	w.tell(a, b)
	w.has(b, "its ttl has passed at the other instance")
}

func TestSheetsThatOvertakeEachOtherDoNoHarm(t *testing.T) {
	w := newWorld(t)
	a, b := w.registry("a"), w.registry("b")
	w.join(a, "fay", leadership.RoleFollower, 1)
	first := a.ChangedSheets(nil, w.now)
	whole := a.WholeSheets(false, nil, w.now)
	w.join(a, "fay", leadership.RoleFollower, 2)
	second := a.ChangedSheets(nil, w.now)
	w.send(b, second...)
	w.send(b, first...)
	w.has(b, "an old one came late", "fay follower 2")
	w.send(b, whole...)
	w.has(b, "an old whole one came late", "fay follower 2")
	a.Leave(jobs, "fay", w.now)
	w.tell(a, b)
	w.send(b, second...)
	w.send(b, whole...)
	w.has(b, "all come again")
}

func TestAWholeSheetOfManyMembersComesInPiecesUnderAMegabyte(t *testing.T) {
	w := newWorld(t)
	a, b := w.registry("a"), w.registry("b")
	note := strings.Repeat("<", 256)
	for n := range leadership.MaxMembers {
		j := leadership.JoinRequest{
			Election: leadership.Election(fmt.Sprintf("jobs%d", n%7)), CandidateID: leadership.CandidateID(fmt.Sprintf("worker-%d", n)),
			Role: leadership.RoleWorker, TTL: time.Minute, SeenToken: leadership.MaxToken, Note: note,
		}
		require.NoError(t, a.Join(j, w.now))
	}
	pieces := a.WholeSheets(true, nil, w.now)
	for _, p := range pieces {
		if len(p) > 1<<20 {
			t.Errorf("a piece has %d bytes", len(p))
		}
	}
	gone := &leadership.LeaveRequest{Election: "jobs3", CandidateID: "worker-3"}
	for i := range pieces { // in the opposite order
		w.send(b, pieces[len(pieces)-1-i])
	}
	if got := b.Size().Remote; got != leadership.MaxMembers {
		t.Errorf("%d members came in %d pieces", got, len(pieces))
	}
	a.Leave(gone.Election, gone.CandidateID, w.now)
	a.ChangedSheets(nil, w.now) // is lost
	pieces = a.WholeSheets(false, nil, w.now)
	w.send(b, pieces[1:]...)
	assert.True(t, b.Present(gone.Election, gone.CandidateID, w.now), "before all pieces have come, a member is taken for gone")
	w.send(b, pieces[0])
	if b.Present(gone.Election, gone.CandidateID, w.now) || b.Size().Remote != leadership.MaxMembers-1 {
		t.Errorf("all pieces have come, and %d members are known", b.Size().Remote)
	}
}

func TestOtherInstancesTellAMemberThatHasLeftFromOneThatHasVanished(t *testing.T) {
	for what, sheets := range map[string]func(*members.Registry, time.Duration) [][]byte{
		"changes": func(r *members.Registry, now time.Duration) [][]byte { return r.ChangedSheets(nil, now) },
		"a whole": func(r *members.Registry, now time.Duration) [][]byte { return r.WholeSheets(false, nil, now) },
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			a, b := w.registry("a"), w.registry("b")
			for _, id := range []leadership.CandidateID{"fay", "gus"} {
				require.NoError(t, a.Open(jobs, id, 1, w.now))
			}
			w.join(a, "hal", leadership.RoleWorker, 1)
			w.tell(a, b)
			next := watch(b)
			a.Close(jobs, "fay", w.now)
			for range 2 {
				w.pass(15 * time.Second)
				w.send(b, sheets(a, w.now)...)
			}
			assert.Empty(t, cmp.Diff([]string{"fay follower left", "hal worker vanished"}, changes(b, &next)), "told (-want +got)")
		})
	}
}

func TestAGoodbyeRemovesTheMembersOfAnInstanceAtOnce(t *testing.T) {
	w := newWorld(t)
	a, b, c := w.registry("a"), w.registry("b"), w.registry("c")
	next := watch(b)
	w.join(a, "fay", leadership.RoleFollower, 1)
	w.join(a, "gus", leadership.RoleFollower, 1)
	late := a.WholeSheets(false, nil, w.now)
	w.tell(a, b)
	w.send(b, late...)
	w.send(b, a.Bye())
	w.has(b, "it has gone")
	w.send(b, late...)
	w.has(b, "a sheet came late")
	w.pass(time.Second)
	w.join(c, "gus", leadership.RoleFollower, 1)
	w.tell(c, b)
	w.pass(5 * time.Second)
	want := []string{"fay follower joined", "fay follower vanished", "gus follower joined"}
	assert.Empty(t, cmp.Diff(want, changes(b, &next)), "one came back through another instance; told (-want +got)")
}

func TestAMemberThatJoinsAtOneInstanceAfterTheOtherIsKeptByTheLast(t *testing.T) {
	w := newWorld(t)
	a, b := w.registry("a"), w.registry("b")
	w.join(a, "fay", leadership.RoleWorker, 1)
	w.tell(a, b)
	w.pass(4 * time.Second)
	w.join(b, "fay", leadership.RoleFollower, 2)
	w.tell(b, a)
	if got := a.Size().Own; got != 0 {
		t.Errorf("the first instance still keeps %d members", got)
	}
	w.tell(a, b)
	for _, r := range []*members.Registry{a, b} {
		w.has(r, "it joined again elsewhere", "fay follower 2")
	}
	a.Leave(jobs, "fay", w.now) // at the first instance, which does not keep it
	w.tell(a, b)
	w.tell(b, a)
	for _, r := range []*members.Registry{a, b} {
		w.has(r, "it has left", nil...)
	}
}

func TestSheetsTellOfRenewedLeasesAndAskForSheets(t *testing.T) {
	w := newWorld(t)
	a, b := w.registry("a"), w.registry("b")
	if sheets := a.WholeSheets(false, nil, w.now); len(sheets) > 0 {
		t.Errorf("there is nothing to say, and this is said: %s", sheets)
	}
	renewed := []members.Renewed{{Election: jobs, Token: 7, Left: 20 * time.Second}}
	for _, ask := range []bool{false, true} {
		sheets := a.ChangedSheets(renewed, w.now)
		if ask {
			sheets = a.WholeSheets(true, renewed, w.now)
		}
		require.Len(t, sheets, 1, "asking is %v: sheets", ask)
		heard, err := b.Hear(sheets[0], w.now)
		if err != nil || heard.Ask != ask || len(heard.Renewed) != 1 || heard.Renewed[0] != renewed[0] {
			t.Errorf("asking is %v: heard %+v, %v", ask, heard, err)
		}
	}
	if heard, err := a.Hear(a.WholeSheets(true, renewed, w.now)[0], w.now); err != nil || heard.Ask || heard.Renewed != nil {
		t.Errorf("its own sheet: %+v, %v", heard, err)
	}
}

// sheet is a sheet of another instance.
func sheet(fields string) []byte {
	return []byte(`{"v":1,"from":"other","seq":1,"elections":[{"e":"jobs","m":[{"id":"fay","r":"follower"}]}]` + fields + `}`)
}

func TestUnknownFieldsAndRolesOfALaterVersionAreIgnored(t *testing.T) {
	w := newWorld(t)
	r := w.registry("a")
	w.send(r, []byte(`{"v":1,"from":"other","seq":1,"new":[1],"elections":[{"e":"jobs","x":2,"m":[{"id":"fay","r":"follower","y":{}},{"id":"sue","r":"judge"}]}]}`))
	w.has(r, "one member of a known role", "fay follower 0")
}

func TestJunkIsRefusedAndChangesNothing(t *testing.T) {
	w := newWorld(t)
	r := w.registry("a")
	part := func(s string) []byte {
		return []byte(`{"v":1,"from":"other","seq":1,"elections":[{"e":"jobs","m":[{"id":"fay","r":"follower"}]},` + s + `]}`)
	}
	for what, message := range map[string][]byte{
		"nothing":              {},
		"no JSON":              []byte("junk"),
		"another document":     []byte(`[1,2]`),
		"another version":      bytes.Replace(sheet(""), []byte(`"v":1`), []byte(`"v":2`), 1),
		"no instance":          bytes.Replace(sheet(""), []byte(`"other"`), []byte(`""`), 1),
		"no number":            bytes.Replace(sheet(""), []byte(`"seq":1`), []byte(`"seq":0`), 1),
		"too long":             sheet(`,"x":"` + strings.Repeat("x", 1<<20) + `"`),
		"no such piece":        sheet(`,"whole":{"first":1,"of":0}`),
		"a piece of others":    sheet(`,"whole":{"first":2,"of":3}`),
		"too many pieces":      sheet(`,"whole":{"first":1,"of":1000000}`),
		"no election":          part(`{"e":"Not Valid"}`),
		"no member":            part(`{"e":"jobs","m":[{"id":"","r":"follower"}]}`),
		"no token":             part(`{"e":"jobs","m":[{"id":"x","r":"follower","t":-1}]}`),
		"a token too large":    part(`{"e":"jobs","t":9007199254740992}`),
		"the future":           part(`{"e":"jobs","m":[{"id":"x","r":"follower","ago":-5}]}`),
		"no position":          part(`{"e":"jobs","m":[{"id":"x","r":"candidate","p":-1}]}`),
		"a note too long":      part(`{"e":"jobs","m":[{"id":"x","r":"worker","n":"` + strings.Repeat("x", 257) + `"}]}`),
		"no member has gone":   part(`{"e":"jobs","gone":["?"]}`),
		"no member has left":   part(`{"e":"jobs","left":[{"id":"?"}]}`),
		"no proposals":         part(`{"e":"jobs","q":{"n":0}}`),
		"no lease":             sheet(`,"renewed":[{"e":"?","t":1,"left":1}]`),
		"a lease that is over": sheet(`,"renewed":[{"e":"jobs","t":1,"left":-1}]`),
		"a lease for ever":     sheet(`,"renewed":[{"e":"jobs","t":1,"left":9000000000}]`),
	} {
		if heard, err := r.Hear(message, w.now); err == nil || heard.Ask || heard.Renewed != nil {
			t.Errorf("%s: heard %+v, %v", what, heard, err)
		}
	}
	w.has(r, "after all that")
	w.send(r, sheet(""))
	w.has(r, "after a good one", "fay follower 0")
}

func TestTheMembersOfOtherInstancesAreBounded(t *testing.T) {
	w := newWorld(t)
	r := w.registry("a")
	type entry struct {
		ID   string `json:"id"`
		Role string `json:"r"`
	}
	flood := func(from string, seq, first, n int) error {
		var all []entry
		for i := range n {
			all = append(all, entry{fmt.Sprintf("%s%d", from, first+i), "worker"})
		}
		data, err := json.Marshal(map[string]any{"v": 1, "from": from, "seq": seq, "elections": []any{map[string]any{"e": jobs, "m": all}}})
		require.NoError(t, err)
		_, err = r.Hear(data, w.now)
		return err
	}
	for p := range 5 {
		for seq := range 2 {
			require.NoError(t, flood(fmt.Sprintf("p%d", p), seq+1, 10_000*seq, 10_000))
		}
		if err := flood(fmt.Sprintf("p%d", p), 3, 20_000, 1); err == nil {
			t.Fatal("an instance may have more than 20,000 members")
		}
	}
	if err := flood("q", 1, 0, 10); err == nil || r.Size().Remote != 100_000 {
		t.Errorf("%v; %d members of other instances are remembered", err, r.Size().Remote)
	}
	if r.Present(jobs, "q0", w.now) || len(r.Members(leadership.Lease{Election: jobs}, 0, w.now)) != 100_000 {
		t.Error("a member beyond the limit counts")
	}
	var refused error
	for n := range 300 {
		refused = errors.Join(refused, flood(fmt.Sprintf("one%d", n), 1, 0, 0))
	}
	if refused == nil || r.Size().Instances != 256 {
		t.Errorf("%d instances are remembered", r.Size().Instances)
	}
	w.join(r, "own", leadership.RoleFollower, 0)
	w.pass(41 * time.Second)
	if got := r.Size(); got.Remote != 0 || got.Instances != 0 {
		t.Errorf("all are silent, and it remembers %+v", got)
	}
}

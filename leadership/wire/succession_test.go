package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
)

// refused reads a request, which must be refused with the reason.
func refused[W, R any](read func(W, leadership.Election) (R, error)) func(*testing.T, string, string, string) {
	return func(t *testing.T, body, field, detail string) {
		t.Helper()
		var w W
		err := Decode([]byte(body), &w)
		if err == nil {
			_, err = read(w, "planner")
		}
		wantInvalid(t, err, field, detail)
	}
}

func TestMalformedSuccessionIsRefusedWithAReason(t *testing.T) {
	t.Parallel()
	const key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
	const leads = `{"candidateId":"agent-7","key":"` + key + `","fencingToken":4`
	const numbered = leads + `,"sequence":1`
	handOver := refused(func(w HandOverRequest, e leadership.Election) (leadership.Command, error) { return w.Command(e, 0) })
	yield := refused(Holder.Leadership)
	delegate, checkpoint := refused(DelegateRequest.Leadership), refused(CheckpointRequest.Leadership)
	add, snapshot, await := refused(AppendRequest.Leadership), refused(SnapshotRequest.Leadership), refused(AcknowledgementRequest.Leadership)
	deep := strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1)
	for _, c := range []struct {
		refused             func(*testing.T, string, string, string)
		body, field, detail string
	}{
		{handOver, `{"candidateId":"agent-7","key":"` + key + `"}`, "/fencingToken", "fencingToken is missing; this request requires it"},
		{handOver, leads + `,"to":""}`, "/to", "to is empty; name the successor, or leave it out for the best candidate that waits"},
		{handOver, leads + `,"within":"0s"}`, "/within", "within is from 1s to 600s, not 0s; leave it out for 30s"},
		{handOver, leads + `,"reason":""}`, "/reason", "reason is empty; say why, or leave it out"},
		{yield, `{"candidateId":"agent-7","fencingToken":4,"key":"` + key + `="}`, "/key", "a key is 32 random bytes"},
		{delegate, leads + `}`, "/child", "child is missing; this request requires it"},
		{delegate, leads + `,"child":"part","limits":{"depth":-1}}`, "/limits/depth", "limits.depth is 0 or more, not -1"},
		{delegate, leads + `,"child":"part","limits":{"budget":-1}}`, "/limits/budget", "limits.budget is 0 or more, not -1"},
		{checkpoint, leads + `,"data":1}`, "/sequence", "sequence is missing; this request requires it"},
		{checkpoint, numbered + `}`, "/data", "data is missing; send it or, if it is elsewhere, its uri"},
		{checkpoint, numbered + `,"data":null}`, "/data", "data is any JSON but null; send an empty object if there is nothing to say"},
		{checkpoint, numbered + `,"data":{},"uri":"gs://b/o"}`, "/data", "there are both data and a uri; send one of them"},
		{checkpoint, numbered + `,"uri":""}`, "/uri", "uri is empty; say where the data is"},
		{checkpoint, numbered + `,"uri":"gs://b/o","sha256":""}`, "/sha256", "sha256 is empty; send 64 hexadecimal digits"},
		{checkpoint, numbered + `,"data":` + deep + `}`, "/data", "data nests more than 100 arrays and objects; send it flatter"},
		{add, leads + `,"entries":[{"data":1}]}`, "/after", "after is missing; this request requires it"},
		{add, leads + `,"after":-1,"entries":[{"data":1}]}`, "/after", "after is the index of the last entry that you know, or 0 if there is none, and not -1"},
		{add, leads + `,"after":0}`, "/entries", "entries is missing; this request requires it"},
		{add, leads + `,"after":0,"entries":[{"data":1},{"type":"x"}]}`, "/entries/1/data", "data is missing; this request requires it"},
		{add, leads + `,"after":0,"entries":[{"data":1},{"data":null}]}`, "/entries/1/data", "data is any JSON but null"},
		{add, leads + `,"after":0,"entries":[{"data":1},{"data":[` + deep + `]}]}`, "/entries/1/data", "data nests more than 100"},
		{snapshot, leads + `,"data":{}}`, "/upTo", "upTo is missing; this request requires it"},
		{snapshot, leads + `,"upTo":4}`, "/data", "data is missing"},
		{await, `{"need":1}`, "/fencingToken", "send the token that members are to follow, or the journalIndex that they are to have applied"},
		{await, `{"need":1,"fencingToken":0,"journalIndex":4}`, "/fencingToken", "leave it out if you ask for a journalIndex alone"},
		{await, `{"need":1,"journalIndex":0}`, "/journalIndex", "journalIndex is the index of an entry, from 1, not 0"},
		{await, `{"need":1,"journalIndex":-4}`, "journalIndex", "journalIndex is the index of an entry"},
	} {
		c.refused(t, c.body, c.field, c.detail)
	}
	for body, want := range map[string]struct{ field, detail string }{
		`{"policy":{"leadersOf":""}}`:              {"/policy/leadersOf", "policy.leadersOf is empty"},
		`{"policy":{"delegation":{"parent":""}}}`:  {"/policy/delegation/parent", "policy.delegation.parent is empty"},
		`{"policy":{"delegation":{"depth":0}}}`:    {"/policy/delegation/depth", "is 1 or more in an election without a parent, not 0; leave it out for 8"},
		`{"policy":{"delegation":{"children":0}}}`: {"/policy/delegation/children", "leave it out for 64"},
		`{"policy":{"delegation":{"budget":0}}}`:   {"/policy/delegation/budget", "leave it out for no limit"},
	} {
		var w ConfigureRequest
		err := Decode([]byte(body), &w)
		if err == nil {
			_, err = w.Leadership()
		}
		wantInvalid(t, err, want.field, want.detail)
	}
}

func TestDataIsKeptAsItWasSent(t *testing.T) {
	t.Parallel()
	const leads = `{"candidateId":"a","key":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8","fencingToken":4,`
	for _, data := range []string{`0`, `-1e400`, `""`, `false`, `[]`, `{}`, `"\ud83d\ude00 \\[[[["`, `{"a":[null,{"b":"<&>\u2028"}]}`, strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth)} {
		var checkpoint CheckpointRequest
		require.NoError(t, Decode([]byte(leads+`"sequence":1,"data":`+data+`}`), &checkpoint))
		if r, err := checkpoint.Leadership("planner"); err != nil || string(r.Data) != data {
			t.Errorf("%s is read as %s, %v", data, r.Data, err)
		}
		var add AppendRequest
		require.NoError(t, Decode([]byte(leads+`"after":0,"entries":[{"data":`+data+`}]}`), &add))
		if r, err := add.Leadership("planner"); err != nil || string(r.Entries[0].Data) != data {
			t.Errorf("%s is read as %+v, %v", data, r.Entries, err)
		}
	}
}

// writtenAgain writes a document, and reads it as a client does.
func writtenAgain[W any](t *testing.T, w W) W { t.Helper(); return sentAndRead(t, w, Unmarshal) }

func TestLedgerIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	at := time.Date(2027, 3, 1, 12, 0, 0, 123456789, time.UTC)
	data := json.RawMessage(`{"done":[1,"<2>"]}`)
	same := func(sent, got any) {
		t.Helper()
		assert.Empty(t, cmp.Diff(sent, got), "sent (-) and received (+) differ")
	}
	for _, p := range []leadership.Checkpoint{
		{Election: "planner", Token: 4, LeaderID: "agent-7", Task: "page 3", Data: data, At: at},
		{Election: "planner", Token: 4, LeaderID: "agent-7", URI: "gs://b/o", SHA256: strings.Repeat("0f", 32), At: at},
	} {
		same(p, writtenAgain(t, p))
		grant := leadership.Grant{Lease: held(), Inherited: &leadership.Inheritance{Checkpoint: p, EndedBecause: leadership.EndsExpired}}
		same(grant.Inherited, writtenAgain(t, NewGrant(grant)).Inherited)
	}
	same((*leadership.Inheritance)(nil), writtenAgain(t, NewGrant(leadership.Grant{Lease: held()})).Inherited)
	head := leadership.JournalHead{Election: "planner", Token: 4, Index: 41, Snapshot: 40}
	same(head, writtenAgain(t, head))
	page := leadership.JournalPage{JournalHead: head, Entries: []leadership.Entry{{Index: 41, Token: 4, At: at, Type: "put", Data: data}, {Index: 42, Token: 4, At: at, Data: json.RawMessage(`0`)}}}
	same(page, writtenAgain(t, page))
	for _, s := range []leadership.JournalSnapshot{{Election: "planner", UpTo: 40, Token: 4, At: at, Data: data}, {Election: "planner", UpTo: 40, Token: 4, At: at, URI: "gs://b/o"}} {
		same(s, writtenAgain(t, s))
	}
	member := leadership.Member{ID: "node-2", Role: leadership.RoleFollower, Applied: 39, Lag: 2}
	same(member, writtenAgain(t, NewMember(member)).Leadership())
	a := leadership.Acknowledgement{Election: "planner", JournalIndex: 41, Need: 2, Done: true, Follow: []leadership.CandidateID{"a", "b"}, Missing: []leadership.CandidateID{}}
	same(a, writtenAgain(t, a))
}

func TestTreeIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	var sent leadership.Tree
	for i, name := range []leadership.Election{"plan", "plan.a", "plan.a.x", "plan.a.y", "plan.b"} {
		l := held()
		l.Election = name
		if i > 0 {
			l.Config.Delegation.Parent = name[:strings.LastIndexByte(string(name), '.')]
		}
		sent.Leases = append(sent.Leases, l)
	}
	w := NewTree(sent)
	if len(w.Children) != 2 || len(w.Children[0].Children) != 2 || w.Children[1].Election != "plan.b" || w.Children[1].Children == nil {
		t.Errorf("written as %+v", w)
	}
	got, err := writtenAgain(t, w).Leadership()
	if diff := cmp.Diff(sent, got); err != nil || diff != "" {
		t.Errorf("%v; sent (-) and received (+) differ:\n%s", err, diff)
	}
	broken := writtenAgain(t, w)
	broken.Children[0].Children[1].State = "asleep"
	if _, err := broken.Leadership(); err == nil {
		t.Error("a tree with an election in an unknown state is accepted")
	}
}

func TestEntryIDIsAnIndex(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]leadership.Index{"0": 0, "7": 7, "1000:7": 7, "9007199254740991": 9007199254740991} {
		if generation, got, err := ParseLastEntryID(id); got != want || EntryID(generation, got) != id || err != nil {
			t.Errorf("%q is read as %d of %d, %v", id, got, generation, err)
		}
	}
	for _, id := range []string{"", "-1", "07", "+7", "7.0", "seven", "9223372036854775808", "0:7", ":7", "7:", "1:2:3"} {
		_, _, err := ParseLastEntryID(id)
		wantInvalid(t, err, LastEventIDHeader, "must be the id of the last entry that was read")
	}
}

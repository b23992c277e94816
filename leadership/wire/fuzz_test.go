package wire

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"regent/leadership"
)

// requests is bodies of requests, or nearly.
var requests = []string{
	`{"candidateId":"agent-7"}`, `{"candidateId":"a","candidateId":"b"}`, `{"candidateId":null,"metadata":{"x":1e400}}`,
	`{"candidateId":"agent-7","key":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8","leaseDuration":"1m30s","metadata":{"a":[1,{"b":"\ud83d\ude00"}]}}`,
	`{"candidateId":"a","key":"b","leaseDuration":"30s","metadata":{"a":"1" , "b":"2"},"note":"n","wait":"1s"}`,
	`{"candidateId":"a","role":"witness","priority":7,"capabilities":["gpu" ,"eu"],"load":3}`,
	`{"candidateId":"a","role":"","priority":-2147483649,"capabilities":["gpu",7],"load":1.5}`,
	`{"candidateId":"a","via":{"election":"orders.eu","fencingToken":7,"peer":"eu"},"inherit":true}`,
	`{"candidateId":"a","via":{"election":"","fencingToken":0,"peer":""},"inherit":false}`,
	// of a leader
	leader + `}`, leader + `,"report":{"progress":412,"eta":"20m","dependencies":{"bq":"ok"}}}`, leader + `,"report":{"errors":-1.5,"custom":{"a":[{}],"a":null}}}`,
	` {"election":"planner" ,"candidateId":"a", "key":"b", "fencingToken":10,"ticket":"t"} `,
	leader + `,"to":"agent-8","within":"30s","reason":"a new version"}`, leader + `,"to":"","within":"0s","reason":""}`,
	leader + `,"child":"part-1","limits":{"depth":0,"children":2,"budget":9007199254740991}}`, leader + `,"child":"","limits":{"depth":-1,"children":null}}`,
	leader + `,"sequence":1,"task":"page 3","data":{"done":[1,2],"a":null}}`, leader + `,"uri":"gs://b/o","sha256":"00"}`, leader + `,"uri":"","sha256":"","data":null}`,
	leader + `,"after":0,"entries":[{"type":"put","data":"x"},{"data":[[]]}]}`, leader + `,"after":-1,"entries":[{},null]}`,
	leader + `,"upTo":40,"data":{"a":"\u005b\"["}}`, leader + `,"upTo":0,"data":1,"uri":"x:y"}`,
	// of others
	`{"fencingToken":4.5}`, `{"fencingToken":4,"use":"write"}`, `{"candidateId":"node-2","role":"follower","ttl":"30s","seenToken":4,"note":"shard 3"}`,
	`{"candidateId":"","role":"king","ttl":"-9s","seenToken":0}`, `{"fencingToken":7,"need":2,"wait":"10s"}`, `{"journalIndex":40,"need":2,"wait":"1.5ms"}`,
	`{"fencingToken":0,"journalIndex":-1,"need":2}`, `{"candidateId":"agent-7","for":"1h","reason":"spare the quota","actor":"ann"}`,
	`{"fencingToken":4,"ban":"0s","reason":""}`, `{"mode":"","for":"-1s","newEpoch":false,"override":"ban-3","reason":"x"}`,
	// configurations
	`{}`, `{"leaseDuration":"90s","lockDelay":"0.5s"}`, `{"leaseDuration":"0s","lockDelay":"-1ns"}`,
	`{"policy":{"maxTerm":"8h","approval":{"every":"1h","need":2},"stuckAfter":"5m","budget":{"tokensUsed":7},"errorRate":{"max":0.5,"min":20},"onTrip":"notify","cooldown":"10m","verdicts":2}}`,
	`{"policy":{"strategy":"capability","require":["gpu"],"prefer":["eu","ssd"],"window":"1.5s","preempt":true,"minTerm":"5m","quorum":{"electorate":["a","b"],"need":"majority","grace":"10s"}}}`,
	`{"policy":{"strategy":"","require":["a","a"],"window":"-1ms","quorum":{"electorate":[],"need":1.5,"grace":"0s"}}}`,
	`{"policy":{"window":"0s","quorum":{"electorate":["a"],"need":1}}}`, `{"policy":{"approval":{"need":-1},"budget":{},"errorRate":{"max":1e308}}}`,
	`{"policy":{"promotion":true,"leadersOf":"orders.","delegation":{"depth":2,"children":3,"budget":100}}}`,
	`{"policy":{"leadersOf":"","delegation":{"parent":"plan","depth":0,"children":0,"budget":0}}}`,
	// batches
	`{"renewals":[` + leader + `,"election":"planner"}]}`, `{"renewals":[7,null,{},{"election":"planner"}]}`,
	`{"checks":[{"election":"planner","fencingToken":4}]}`, `{"checks":[{"election":"planner","fencingToken":4,"x":0}],"checks":[]}`,
}

const (
	leader  = `{"candidateId":"agent-7","key":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8","fencingToken":4`
	renewal = `{"candidateId":"agent-7","key":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8","fencingToken":1}`
)

// FuzzDecodeRequests reads each body as each request. What is accepted is written as it was read.
func FuzzDecodeRequests(f *testing.F) {
	for _, body := range requests {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		requestAlike(t, body)
		readAgain(t, body, AcquireRequest.Leadership, NewAcquireRequest)
		readAgain(t, body, LeaseRequest.Leadership, NewLeaseRequest)
		readAgain(t, body, TokenCheck.Leadership, NewTokenCheck)
		readAgain(t, body, JoinRequest.Leadership, NewJoinRequest)
		readAgain(t, body, AcknowledgementRequest.Leadership, NewAcknowledgementRequest)
		readAgain(t, body, HandOverRequest.Leadership, NewHandOverRequest)
		readAgain(t, body, Holder.Leadership, NewHolder)
		readAgain(t, body, DelegateRequest.Leadership, NewDelegateRequest)
		readAgain(t, body, CheckpointRequest.Leadership, NewCheckpointRequest)
		readAgain(t, body, AppendRequest.Leadership, NewAppendRequest)
		readAgain(t, body, SnapshotRequest.Leadership, NewSnapshotRequest)
		configure := func(w ConfigureRequest, _ leadership.Election) (leadership.Config, error) { return w.Leadership() }
		readAgain(t, body, configure, NewConfigureRequest)
		for _, kind := range leadership.Orders() {
			read := func(w OrderRequest, e leadership.Election) (leadership.OrderRequest, error) {
				return w.Leadership(e, kind, 7)
			}
			readAgain(t, body, read, func(r leadership.OrderRequest) OrderRequest { return NewOrderRequest(r.OrderCommand) })
		}
		var renewals Renewals
		if accepted(t, body, &renewals) {
			for _, e := range renewals.Renewals {
				requireInvalidOrNil(t, e.Err)
			}
		}
		var checks Checks
		if accepted(t, body, &checks) {
			for _, e := range checks.Checks {
				requireInvalidOrNil(t, e.Err)
			}
		}
	})
}

// readAgain reads a request, and sees to it that it is written as it was read.
func readAgain[W, R any](t *testing.T, body []byte, read func(W, leadership.Election) (R, error), write func(R) W) {
	t.Helper()
	var w W
	if !accepted(t, body, &w) {
		return
	}
	r, err := read(w, "planner")
	if err != nil {
		requireInvalid(t, err)
		return
	}
	again(t, write(r))
	if r2, err := read(write(r), "planner"); err != nil || !cmp.Equal(r, r2) {
		t.Errorf("%s is read as %+v, and again as %+v, %v", body, r, r2, err)
	}
}

// FuzzDecodeIsStrict holds Decode to what encoding/json, which is lenient, reads in the same body.
func FuzzDecodeIsStrict(f *testing.F) {
	f.Add([]byte(`{"candidateId":"agent-7","wait":"1s"}`))
	f.Add([]byte(`{"CandidateID":"a","candidateId":"b"}`))
	f.Add([]byte(`{"candidateId":"a","key":null}`))
	f.Add([]byte(`{"candidateId":"\ud83d"}`))
	f.Add([]byte(` {"candidate\u0049d" : "a\u0000"} `))
	f.Add([]byte(`{"candidateId":"a","note":"n","role":"witness","priority":-7,"capabilities":[],"load":0}`))
	f.Add([]byte(`{"candidateId":"a","via":{"election":"b","fencingToken":3,"peer":"eu"},"inherit":true}`))
	known := []string{"candidateId", "key", "leaseDuration", "metadata", "note", "wait", "role", "priority", "capabilities", "load", "via", "inherit"}
	f.Fuzz(func(t *testing.T, body []byte) {
		var got, lenient AcquireRequest
		if !accepted(t, body, &got) {
			return
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(body, &members); err != nil {
			t.Fatal(err)
		}
		if _, ok := members["candidateId"]; !ok {
			t.Errorf("%q was accepted without a candidate", body)
		}
		for name, value := range members {
			if !slices.Contains(known, name) || string(value) == "null" {
				t.Errorf("%q was accepted with %q: %s", body, name, value)
			}
		}
		if err := json.Unmarshal(body, &lenient); err != nil {
			t.Fatalf("%q was accepted: %v", body, err)
		}
		if diff := cmp.Diff(lenient, got); diff != "" {
			t.Errorf("encoding/json (-) and Decode (+) read %q differently:\n%s", body, diff)
		}
	})
}

// FuzzMarshal holds the replies to what encoding/json, as many a client has it, reads in them.
func FuzzMarshal(f *testing.F) {
	f.Add("reports", "ann", "held", int64(7), int64(30_000), int64(30e9), int64(1_700_000_000_123_456_789), "key", true)
	f.Add("", "", "", int64(0), int64(0), int64(0), int64(0), "", false)
	f.Add("a\"b", "\x01<é>\u2028\xff", "vacant", int64(-1), int64(-5), int64(1500e6), int64(1e18), "\\", true)
	f.Fuzz(func(t *testing.T, election, leader, state string, n, ms, d, at int64, key string, flag bool) {
		l := Lease{
			Election: leadership.Election(election), State: leadership.State(state), LeaderID: leadership.CandidateID(leader),
			FencingToken: leadership.Token(n), Revision: leadership.Revision(n / 2), LeaseDuration: Duration(d), LockedForMs: ms,
			Deleted: flag, MaxStalenessMs: ms / 2,
			Configuration: Configuration{
				LeaseDuration: Duration(d / 2), MaxLeaseDuration: Duration(d / 4), LockDelay: Duration(d / 3), RetireAfter: Duration(d / 5), Description: key,
			},
		}
		if flag {
			l.ExpiresInMs, l.RenewInMs = &ms, &n
			l.AcquiredAt, l.LastHeartbeat = time.Unix(0, at).UTC(), time.Unix(at%4e9, 0).UTC()
			l.Metadata, _ = json.Marshal(map[string]string{leader: state})
			l.EndsBy, l.EndsBecause, l.EndsInMs = l.AcquiredAt, leadership.EndReason(key), ms
			l.Report, l.ReportedAt, l.ReportAgeMs = l.Metadata, l.LastHeartbeat, n
			l.Succession = &Succession{To: leadership.CandidateID(key), Since: l.AcquiredAt, UntilMs: ms, Ready: n%2 == 0, Yielded: n%3 == 0}
			l.Ready, l.Via = new(ms%2 == 0), &Via{leadership.Election(leader), leadership.Token(n), &key}
			l.Configuration.Policy = &Policy{Promotion: true, LeadersOf: &leader, Delegation: &Delegation{Parent: &l.Election, Depth: new(int(ms)), Budget: &n}, Strategy: new(leadership.Strategy(state)), Window: new(Duration(d)), Require: []string{leader}, Quorum: &Quorum{Electorate: []string{key}, Need: 2}, MaxTerm: Duration(d), Budget: &Budget{Calls: n}, ErrorRate: &ErrorRate{Max: float64(ms) / 7, Min: n}}
			l.Overrides = []Override{{ID: leadership.OverrideID(key), Actor: leader, Reason: state, Since: l.AcquiredAt, Until: l.LastHeartbeat, UntilMs: ms}}
		}
		event := Event{Election: l.Election, Revision: l.Revision, At: l.AcquiredAt, LeaderID: l.LeaderID, Reason: key, Detail: l.Metadata}
		grant := Grant{Lease: l, Key: key, WaitedMs: ms}
		if flag {
			grant.Inherited = &Inheritance{FencingToken: l.FencingToken, LeaderID: l.LeaderID, Task: key, At: l.AcquiredAt, EndedBecause: l.EndsBecause, Data: l.Metadata}
		}
		allAlike(t, &l, &grant, &event, &Result{Election: l.Election, Lease: &l})
		readAlike(t, grant)
		readAlike(t, Checkpoint{Election: l.Election, FencingToken: l.FencingToken, LeaderID: l.LeaderID, Task: key, At: l.AcquiredAt, Data: l.Metadata, URI: leader})
		readAlike(t, JournalPage{JournalHead{l.Election, l.FencingToken, leadership.Index(ms), leadership.Index(n), l.FencingToken}, []JournalEntry{{Index: leadership.Index(n), Type: key, At: l.AcquiredAt, Data: l.Metadata}}})
		problem := NewProblem(&leadership.Error{Code: leadership.LeaseHeld, Detail: leader})
		problem.Lease, problem.Cause = &l, &Cause{Code: leadership.ReasonBanned, By: leader, Reason: key, Until: l.AcquiredAt, UntilMs: n}
		readAlike(t, problem)
		readAlike(t, Results{[]Result{{Election: l.Election, Lease: &l}, {}, {Election: l.Election, Error: &problem}}})
	})
}

func readAlike[T any](t *testing.T, v T) {
	t.Helper()
	text, err := Marshal(v)
	if err != nil {
		return // a year that JSON cannot have
	}
	var theirs, ours T
	if err := json.Unmarshal(text, &theirs); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if err := Unmarshal(text, &ours); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if diff := cmp.Diff(theirs, ours); diff != "" {
		t.Errorf("encoding/json (-) and Unmarshal (+) read %s differently:\n%s", text, diff)
	}
	if again, err := Marshal(ours); err != nil || string(again) != string(text) {
		t.Errorf("%s is written again as %s, %v", text, again, err)
	}
}

// accepted decodes a request. Every refusal must name the mistake.
func accepted(t *testing.T, body []byte, into any) bool {
	t.Helper()
	err := Decode(body, into)
	requireInvalidOrNil(t, err)
	if err == nil && !json.Valid(body) {
		t.Fatalf("%q was accepted, and is not JSON", body)
	}
	return err == nil
}

func requireInvalidOrNil(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		requireInvalid(t, err)
	}
}

func requireInvalid(t *testing.T, err error) {
	t.Helper()
	var e *leadership.Error
	if !errors.As(err, &e) || e.Code != leadership.InvalidArgument || e.Detail == "" {
		t.Fatalf("error %v, want INVALID_ARGUMENT with a detail", err)
	}
}

// again writes what was read and reads it: it must be what it was.
func again[T any](t *testing.T, first T) {
	t.Helper()
	text, err := Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	var second T
	if err := Decode(text, &second); err != nil {
		t.Fatalf("%s was written and is refused: %v", text, err)
	}
	text2, err := Marshal(second)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(text), string(text2)); diff != "" {
		t.Fatalf("written (-) and written again (+) differ:\n%s", diff)
	}
}

func FuzzDecodeProblem(f *testing.F) {
	f.Add([]byte(`{"type":"urn:regent:problem:LEASE_HELD","title":"Lease held","status":409,"detail":"wait","code":"LEASE_HELD","reason":"HELD","retryAfterMs":17250,"election":"planner","state":"held","leaderId":"agent-3","fencingToken":4,"revision":9,"leaseDuration":"30s","expiresInMs":17250,"configuration":{"leaseDuration":"30s","lockDelay":"0s"}}`))
	f.Add([]byte(`{"code":"INVALID_ARGUMENT","errors":[{"pointer":"/candidateId","detail":"no"},{}]}`))
	f.Add([]byte(`{"code":"SOMETHING_NEW","retryAfterMs":9223372036854775807,"expiresInMs":-9223372036854775808}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := DecodeProblem(body)
		if err != nil {
			return
		}
		e := p.Leadership()
		if !errors.Is(e, p.Code) || e.RetryAfter < 0 {
			t.Fatalf("%s becomes %+v", body, e)
		}
		if e.Lease != nil && (e.Lease.Election == "" || e.Lease.ExpiresIn < 0) {
			t.Fatalf("%s becomes the lease %+v", body, e.Lease)
		}
	})
}

func FuzzDecodeResults(f *testing.F) {
	f.Add([]byte(`{"results":[{"election":"planner","lease":{"election":"planner","state":"vacant","fencingToken":4,"revision":11,"leaseDuration":"90s","lockedForMs":1,"readAt":"2027-03-01T12:05:00Z","configuration":{"leaseDuration":"90s","lockDelay":"15s"}}},{"election":"scribe","error":{"code":"LEASE_LOST","detail":"stop"}},{}]}`))
	f.Add([]byte(`{"results":[{"lease":{"election":"a","state":"held","leaderId":"b","fencingToken":1,"expiresInMs":9223372036854775807,"renewInMs":-1,"metadata":{"a":[]}}}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var w Results
		if Unmarshal(body, &w) != nil {
			return
		}
		for i, r := range w.Results {
			result, err := r.Leadership(At("renewals", i))
			if err != nil || result.Err != nil {
				continue
			}
			if l := result.Lease; l.Election == "" || l.ExpiresIn < 0 || l.RenewIn < 0 || l.LockedFor < 0 || l.State == leadership.Held && l.Token < 1 {
				t.Fatalf("%s becomes the lease %+v", body, l)
			}
		}
	})
}

func FuzzParseIfMatch(f *testing.F) {
	f.Add(`"7"`)
	f.Add(`*`)
	f.Add(`W/"7"`)
	f.Fuzz(func(t *testing.T, header string) {
		r, err := ParseIfMatch([]string{header})
		if err != nil {
			requireInvalid(t, err)
			return
		}
		if again, err := ParseIfMatch([]string{ETag(r)}); err != nil || again != r || r == 0 {
			t.Fatalf("%q is revision %d, which is read again as %d, %v", header, r, again, err)
		}
	})
}

func FuzzDuration(f *testing.F) {
	f.Add([]byte(`"1m30s"`))
	f.Add([]byte(`"-1.5h"`))
	f.Add([]byte(`"0.000000001s"`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var d, again Duration
		if Unmarshal(text, &d) != nil {
			return
		}
		written, err := Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if err := Unmarshal(written, &again); err != nil || again != d {
			t.Fatalf("%s is written as %s, which is read as %v, %v", text, written, again, err)
		}
	})
}

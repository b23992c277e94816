package wire

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
	`{"policy":{"maxTerm":"8h","approval":{"every":"1h","need":2},"stuckAfter":"5m","budget":{"tokensUsed":7},"errorRate":{"max":0.5,"min":20},"onTrip":"notify","cooldown":"10m","cooldownOf":"principal","verdicts":2}}`,
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
		readAgain(t, body, Holder.Leadership, NewHolder)
		readAgain(t, body, DelegateRequest.Leadership, NewDelegateRequest)
		readAgain(t, body, CheckpointRequest.Leadership, NewCheckpointRequest)
		readAgain(t, body, AppendRequest.Leadership, NewAppendRequest)
		readAgain(t, body, SnapshotRequest.Leadership, NewSnapshotRequest)
		for _, row := range Verbs() {
			if row.Body != nil {
				commandAgain(t, body, row)
			}
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

// commandAgain is readAgain for a command.
func commandAgain(t *testing.T, body []byte, row Row) {
	t.Helper()
	w, w2 := row.Body(), row.Body()
	if !accepted(t, body, w) {
		return
	}
	c, err := w.Command("planner", 7)
	if err != nil {
		requireInvalid(t, err)
		return
	}
	sent, err := Encode(c)
	text, err2 := Marshal(sent.Body)
	err = errors.Join(err, err2, Decode(text, w2))
	c2, err2 := w2.Command("planner", sent.At)
	if errors.Join(err, err2) != nil || !cmp.Equal(c, c2) || Verb(c.Name()) != row.Verb {
		t.Errorf("%s: %s is read as %+v, and again, as %s, as %+v, %v, %v", row.Verb, body, c, text, c2, err, err2)
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
		require.NoError(t, json.Unmarshal(body, &members))
		if _, ok := members["candidateId"]; !ok {
			t.Errorf("%q was accepted without a candidate", body)
		}
		for name, value := range members {
			if !slices.Contains(known, name) || string(value) == "null" {
				t.Errorf("%q was accepted with %q: %s", body, name, value)
			}
		}
		require.NoError(t, json.Unmarshal(body, &lenient), "%q was accepted", body)
		assert.Empty(t, cmp.Diff(lenient, got), "encoding/json (-) and Decode (+) read %q differently", body)
	})
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
	require.NoError(t, err)
	var second T
	require.NoError(t, Decode(text, &second), "%s was written", text)
	text2, err := Marshal(second)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(string(text), string(text2)), "written (-) and written again (+) differ")
}

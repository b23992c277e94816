package wire

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
)

func TestMalformedRequestIsRefusedWithAReason(t *testing.T) {
	t.Parallel()
	const key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
	const fields = "candidateId, key, leaseDuration, metadata, note, wait, role, priority, capabilities, load, via, inherit"
	for _, c := range []struct{ name, body, field, detail string }{
		{"no bytes", "", "", "the body is empty; send a JSON object"},
		{"a byte order mark", "\ufeff{}", "", "byte order mark; send UTF-8 without one"},
		{"bytes that are not UTF-8", "{\"candidateId\":\"a\xff\"}", "", "invalid UTF-8, at byte 17"},
		{"UTF-16", "\xff\xfe{\x00}\x00", "", `invalid character '\xff' at start of value, at byte 0`},
		{"half a document", `{"candidateId":`, "", "it ends before the object does"},
		{"no JSON", `candidateId=a`, "", "invalid character 'c' at start of value, at byte 0"},
		{"a comma too many", `{"candidateId":"a",}`, "", "invalid character ',' at start of value, at byte 18"},
		{"two values", `{"candidateId":"a"}{}`, "", "invalid character '{' after top-level value, at byte 19"},
		{"an array", `[]`, "", "send a JSON object, not an array"},
		{"null", `null`, "", "send a JSON object, not null"},
		{"a field twice", `{"candidateId":"a","candidateId":"b"}`, "/candidateId", `the field "candidateId" is there twice; send it once`},
		{"a field twice, once escaped", `{"candidateId":"a","candidate\u0049d":"b"}`, "/candidateId", `the field "candidateId" is there twice`},
		{"a field twice, deeper", `{"candidateId":"a","metadata":{"x":[{"a/b":1,"a/b":2}]}}`, "/metadata/x/0/a~1b", `the field "a/b" is there twice`},
		{"far too deep", `{"metadata":` + strings.Repeat(`[`, 10_001), "", "exceeded max depth"},
		{"half a surrogate pair", `{"candidateId":"\ud83d"}`, "", "invalid surrogate pair, at byte 16"},
		{"half a pair and a character", `{"candidateId":"\ud83d\u0041"}`, "", "invalid surrogate pair, at byte 16"},
		{"half a pair after a backslash", `{"candidateId":"\\\ud83dx"}`, "", "invalid surrogate pair, at byte 18"},
		{"an unknown field", `{"candidateId":"a","patience":"30s"}`, "/patience", `unknown field "patience"; the fields here are ` + fields},
		{"an unknown field instead of a required one", `{"candidate":"a"}`, "/candidate", `unknown field "candidate"; the fields here are ` + fields},
		{"another case", `{"CandidateId":"a"}`, "/CandidateId", `unknown field "CandidateId"`},
		{"a name with a slash", `{"a/~b":1}`, "/a~1~0b", `unknown field "a/~b"`},
		{"a missing field", `{}`, "/candidateId", "candidateId is missing; this request requires it"},
		{"null in a required field", `{"candidateId":null}`, "/candidateId", "candidateId must be a string, not null; leave it out"},
		{"null for a duration", `{"candidateId":"a","leaseDuration":null}`, "/leaseDuration", `leaseDuration must be a string such as "30s", not null`},
		{"a number for a string", `{"candidateId":7}`, "/candidateId", "candidateId must be a string, not a number"},
		{"a boolean for a string", `{"candidateId":true}`, "/candidateId", "candidateId must be a string, not true or false"},
		{"a number for a duration", `{"candidateId":"a","leaseDuration":30}`, "/leaseDuration", `leaseDuration must be a string such as "30s", not a number`},
		{"a duration without a unit", `{"candidateId":"a","leaseDuration":"30"}`, "/leaseDuration", `leaseDuration must be a duration such as "30s", "1m30s" or "1500ms", not "30"`},
		{"an endless duration", `{"candidateId":"a","leaseDuration":"9223372036854775808s"}`, "/leaseDuration", "must be a duration"},
		{"a lease of no duration", `{"candidateId":"a","leaseDuration":"0s"}`, "/leaseDuration", "from 1s to 24h, not 0s"},
		{"a short key", `{"candidateId":"a","key":"AAAA"}`, "/key", "a key is 32 random bytes"},
		{"a lease to stand on without a token", `{"candidateId":"a","via":{"election":"b"}}`, "/via/fencingToken", "fencingToken is missing; this request requires it"},
		{"a lease to stand on with token 0", `{"candidateId":"a","via":{"election":"b","fencingToken":0}}`, "/via/fencingToken", `the token of your lease of "b", an integer from 1, not 0`},
		{"a lease to stand on in no election", `{"candidateId":"a","via":{"election":"","fencingToken":7}}`, "/via/election", "via.election is empty; name the election that you lead"},
		{"a lease to stand on at no peer", `{"candidateId":"a","via":{"election":"b","fencingToken":7,"peer":""}}`, "/via/peer", "via.peer is empty; name another service, or leave it out for this one"},
		{"a key in a lease to stand on", `{"candidateId":"a","via":{"election":"b","fencingToken":7,"key":"` + key + `"}}`, "/via/key", `unknown field "key"; the fields here are election, fencingToken, peer`},
		{"a text to inherit", `{"candidateId":"a","inherit":"yes"}`, "/inherit", "inherit must be true or false, not a string"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var request AcquireRequest
			err := Decode([]byte(c.body), &request)
			if err == nil {
				_, err = request.Leadership("planner")
			}
			wantInvalid(t, err, c.field, c.detail)
			if strings.Contains(err.Error(), key[:4]) && strings.Contains(c.body, key) {
				t.Errorf("the error repeats the key: %v", err)
			}
		})
	}
}

func TestTokenIsAnInteger(t *testing.T) {
	t.Parallel()
	for value, detail := range map[string]string{
		`"4"`:                  "fencingToken must be a number, not a string",
		`4.0`:                  `fencingToken must be an integer of at most 64 bits, not "4.0"`,
		`9223372036854775808`:  `fencingToken must be an integer of at most 64 bits`,
		`-9223372036854775809`: `fencingToken must be an integer of at most 64 bits`,
		`null`:                 "fencingToken must be a number, not null",
	} {
		var check TokenCheck
		wantInvalid(t, Decode([]byte(`{"fencingToken":`+value+`}`), &check), "/fencingToken", detail)
	}
	wantInvalid(t, Decode([]byte(`{"a":1}`), new(struct{})), "/a", `unknown field "a"; there are no fields here`)
}

func wantInvalid(t *testing.T, err error, field, detail string) {
	t.Helper()
	var e *leadership.Error
	if !errors.As(err, &e) || e.Code != leadership.InvalidArgument {
		t.Fatalf("error %v, want INVALID_ARGUMENT", err)
	}
	if e.Field != field {
		t.Errorf("field %q, want %q (%v)", e.Field, field, err)
	}
	if !strings.Contains(e.Detail, detail) {
		t.Errorf("detail %q does not contain %q", e.Detail, detail)
	}
}

func TestRequestIsReadHoweverItIsWritten(t *testing.T) {
	t.Parallel()
	const body = "\t{ \"candidateId\" : \"a\\u002d\\ud83d\\ude00\\\\\", \"metadata\": {\"a\":{\"a\":[{},{\"a\":null}]},\"b\\\\ud83d\":1} }\r\n"
	var request AcquireRequest
	require.NoError(t, Decode([]byte(body), &request))
	if want := leadership.CandidateID("a-😀\\"); request.CandidateID != want {
		t.Errorf("candidateId %q, want %q", request.CandidateID, want)
	}
	if want := `{"a":{"a":[{},{"a":null}]},"b\\ud83d":1}`; string(request.Metadata) != want {
		t.Errorf("metadata %s, want %s", request.Metadata, want)
	}
}

func TestZeroIsNotMissing(t *testing.T) {
	t.Parallel()
	var lease LeaseRequest
	assert.NoError(t, Decode([]byte(`{"candidateId":"","key":"","fencingToken":-0}`), &lease), "a request of empty fields")
}

func TestMalformedEntryDoesNotSpoilTheBatch(t *testing.T) {
	t.Parallel()
	const body = `{"checks":[{"election":"a","fencingToken":1},7,{"election":"c"},null,{"fencingToken":1},` +
		`{"election":"e","fencingToken":"1"},{"fencingToken":1.5,"x":0,"election":"f"},{"election":7}]}`
	var checks Checks
	require.NoError(t, Decode([]byte(body), &checks))
	for i, want := range []struct{ election, pointer, detail string }{
		{"a", "", ""},
		{"", "/checks/1", "send a JSON object, not a number"},
		{"c", "/checks/2/fencingToken", "fencingToken is missing; this request requires it"},
		{"", "/checks/3", "send a JSON object, not null"},
		{"", "/checks/4/election", "election is missing; this request requires it"},
		{"e", "/checks/5/fencingToken", "fencingToken must be a number, not a string"},
		{"f", "/checks/6/fencingToken", `fencingToken must be an integer of at most 64 bits, not "1.5"`},
		{"", "/checks/7/election", "election must be a string, not a number"},
	} {
		entry := checks.Checks[i]
		if string(entry.Value.Election) != want.election {
			t.Errorf("entry %d has election %q, want %q", i, entry.Value.Election, want.election)
		}
		if want.pointer == "" {
			if entry.Err != nil {
				t.Errorf("entry %d: %v", i, entry.Err)
			}
			continue
		}
		p := NewProblem(entry.Err).In(At("checks", i))
		if len(p.Errors) != 1 || p.Errors[0].Pointer != want.pointer || p.Detail != want.detail {
			t.Errorf("entry %d has problem %+v, want %q at %q", i, p, want.detail, want.pointer)
		}
	}
}

func TestBatchIsRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]struct{ field, detail string }{
		`{}`:              {"/checks", "checks is missing; this request requires it"},
		`{"checks":null}`: {"/checks", "checks must be an array, not null"},
		`{"checks":{}}`:   {"/checks", "checks must be an array, not an object"},
		`{"checks":[]}`:   {"/checks", "a batch has from 1 to 500 elections, this one has 0"},
		`{"checks":[7` + strings.Repeat(",7", leadership.MaxBatch) + `]}`: {"/checks", "a batch has from 1 to 500 elections, this one has 501"},
		`{"checks":[{}`:               {"", "it ends before the object does"},
		`{"checks":[{},`:              {"", "it ends before the object does"},
		`{"checks":[{"a":1,"a":1}]}`:  {"/checks/0/a", `the field "a" is there twice`},
		`{"checks":[],"checks":[]}`:   {"/checks", "a batch has from 1 to 500"},
		`{"checks":[{}],"checks":[]}`: {"/checks", `the field "checks" is there twice`},
	} {
		var checks Checks
		wantInvalid(t, Decode([]byte(body), &checks), want.field, want.detail)
	}
}

// A caller that may send two megabytes must not get much processor time for it.
func TestLargeMalformedBodyIsCheapToRefuse(t *testing.T) {
	for name, body := range largeBodies() {
		var renewals Renewals
		if err := Decode(body, &renewals); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if n := testing.AllocsPerRun(1, func() { Decode(body, &renewals) }); n > MaxBatchBody/4 {
			t.Errorf("%s: %.0f allocations to refuse %d bytes", name, n, len(body))
		}
	}
}

// largeBodies are batches of MaxBatchBody bytes that are wrong in one way each.
func largeBodies() map[string][]byte {
	fill := func(begin, each, end string) []byte {
		return []byte(begin + strings.Repeat(each, (MaxBatchBody-len(begin)-len(end))/len(each)) + end)
	}
	var names bytes.Buffer
	for i := 0; names.Len() < MaxBatchBody-32; i++ {
		fmt.Fprintf(&names, `"%d":0,`, i)
	}
	return map[string][]byte{
		"tiny entries":             fill(`{"renewals":[0`, ",0", `]}`),
		"empty entries":            fill(`{"renewals":[{}`, ",{}", `]}`),
		"nulls":                    fill(`{"renewals":[null`, ",null", `]}`),
		"many names in an entry":   []byte(`{"renewals":[{` + names.String() + `"x":0}`),
		"many names":               []byte(`{` + names.String() + `"x":0}`),
		"a name twice at the end":  []byte(`{"renewals":[{` + names.String() + `"x":0,"x":0}]}`),
		"escapes":                  fill(`{"renewals":["`, `\u0041`, `\ud800"]}`),
		"no end":                   fill(`{"renewals":["`, `\\`, ``),
		"arrays":                   fill(`{"renewals":[`, `[`, ``),
		"objects":                  fill(`{"renewals":[`, `{"a":`, ``),
		"closed objects":           fill(`{"renewals":[{"a":0}`, `,{"a":0}`, `]`),
		"entries that are refused": fill(`{"renewals":[{"election":null}`, `,{"election":null,"x":"`+strings.Repeat("y", 400)+`"}`, `]`),
		"a long name":              fill(`{"renewals":[0],"`, `/`, `":0}`),
		"a long number":            fill(`{"renewals":[`, `9`, `.]}`),
	}
}

package wire

import (
	"errors"
	"strings"
	"testing"

	"regent/leadership"
)

func TestADocumentThatIsNotUnderstoodIsRefusedWithAReason(t *testing.T) {
	t.Parallel()
	const key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
	deep := strings.Repeat(`{"a":`, MaxDepth) + "1" + strings.Repeat("}", MaxDepth)
	for _, c := range []struct{ name, body, field, detail string }{
		{"nothing", "", "", "the body is empty"},
		{"spaces", " \r\n\t", "", "the body is empty"},
		{"a byte order mark", "\ufeff{}", "", "byte order mark"},
		{"bytes that are not UTF-8", "{\"candidateId\":\"a\xff\"}", "", "not UTF-8: see byte 17"},
		{"UTF-16", "\xff\xfe{\x00}\x00", "", "not UTF-8: see byte 0"},
		{"NUL bytes", "{\x00}", "", "not JSON: invalid character '\\x00'"},
		{"half a document", `{"candidateId":`, "", "ends before the value does"},
		{"no JSON", `candidateId=a`, "", "not JSON: invalid character 'c' looking for beginning of value at byte 1"},
		{"a comma too many", `{"candidateId":"a",}`, "", "not JSON: invalid character '}'"},
		{"NaN", `{"fencingToken":NaN}`, "", "not JSON"},
		{"a leading zero", `{"fencingToken":01}`, "", "not JSON"},
		{"two values", `{"candidateId":"a"}{}`, "", "something follows the JSON value that ends at byte 19"},
		{"something behind", `{"candidateId":"a"} x`, "", "something follows"},
		{"an array", `[]`, "", "must be a JSON object, not an array"},
		{"null", `null`, "", "must be a JSON object, not null"},
		{"a string", `"a"`, "", "must be a JSON object, not a string"},
		{"a number", `7`, "", "must be a JSON object, not a number"},
		{"a name twice", `{"candidateId":"a","candidateId":"b"}`, "/candidateId", `"candidateId" stands twice`},
		{"a name twice, once escaped", `{"candidateId":"a","candidate\u0049d":"b"}`, "/candidateId", `"candidateId" stands twice`},
		{"a name twice, deeper", `{"candidateId":"a","metadata":{"x":[{"a/b":1,"a/b":2}]}}`, "/metadata/x/0/a~1b", `"a/b" stands twice`},
		{"too deep", `{"candidateId":"a","metadata":` + deep + `}`, "", "nested at most 32 deep"},
		{"far too deep", strings.Repeat(`[`, 10_001), "", "not JSON"},
		{"half a surrogate pair", `{"candidateId":"\ud83d"}`, "", "half a surrogate pair at byte 16"},
		{"the other half", `{"candidateId":"\ude00"}`, "", "half a surrogate pair at byte 16"},
		{"half a pair and a character", `{"candidateId":"\ud83d\u0041"}`, "", "half a surrogate pair"},
		{"half a pair after a backslash", `{"candidateId":"\\\ud83dx"}`, "", "half a surrogate pair at byte 18"},
		{"an unknown field", `{"candidateId":"a","patience":"30s"}`, "/patience", `"patience" is not known here; there are: candidateId, key, leaseDuration, metadata, wait`},
		{"another case", `{"CandidateId":"a"}`, "/candidateId", "candidateId is missing"},
		{"a missing field", `{}`, "/candidateId", "candidateId is missing"},
		{"null in a field", `{"candidateId":"a","key":null}`, "/key", "key must be a string, not null; leave it out"},
		{"a number for a string", `{"candidateId":7}`, "/candidateId", "candidateId must be a string, not a number"},
		{"an array for an object", `{"candidateId":"a","metadata":[]}`, "/metadata", "metadata must be an object, not an array"},
		{"a number for a duration", `{"candidateId":"a","leaseDuration":30}`, "/leaseDuration", "leaseDuration must be a string, not a number"},
		{"a duration without a unit", `{"candidateId":"a","leaseDuration":"30"}`, "/leaseDuration", `must be a duration such as "30s", "1m30s" or "1500ms", not "30"`},
		{"an ISO 8601 duration", `{"candidateId":"a","leaseDuration":"PT30S"}`, "/leaseDuration", `not "PT30S"`},
		{"a duration that no one can wait for", `{"candidateId":"a","leaseDuration":"9223372036854775808s"}`, "/leaseDuration", "must be a duration"},
		{"no duration", `{"candidateId":"a","leaseDuration":"0s"}`, "/leaseDuration", "from 1s to 24h, not 0s"},
		{"a short key", `{"candidateId":"a","key":"AAAA"}`, "/key", "a key is 32 random bytes"},
		{"a padded key", `{"candidateId":"a","key":"` + key + `="}`, "/key", "a key is 32 random bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var request AcquireRequest
			err := Decode([]byte(c.body), &request)
			if err == nil {
				_, err = request.Leadership("planner")
			}
			wantInvalid(t, err, c.field, c.detail)
			if strings.Contains(err.Error(), key) {
				t.Errorf("the error repeats the key: %v", err)
			}
		})
	}
}

func TestATokenIsAnIntegerAndNothingElse(t *testing.T) {
	t.Parallel()
	for value, detail := range map[string]string{
		`"4"`:                  "fencingToken must be a number, not a string",
		`4.0`:                  `fencingToken must be an integer of at most 64 bits, not "4.0"`,
		`4e0`:                  `fencingToken must be an integer of at most 64 bits, not "4e0"`,
		`1e400`:                `fencingToken must be an integer of at most 64 bits, not "1e400"`,
		`9223372036854775808`:  `fencingToken must be an integer of at most 64 bits`,
		`true`:                 "fencingToken must be a number, not true or false",
		`[4]`:                  "fencingToken must be a number, not an array",
		`{"fencingToken":4}`:   "fencingToken must be a number, not an object",
		`null`:                 "fencingToken must be a number, not null",
		`-9223372036854775809`: `fencingToken must be an integer of at most 64 bits`,
	} {
		var check TokenCheck
		wantInvalid(t, Decode([]byte(`{"fencingToken":`+value+`}`), &check), "/fencingToken", detail)
	}
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

func TestADocumentThatIsUnderstoodIsTaken(t *testing.T) {
	t.Parallel()
	const body = "\t{ \"candidateId\" : \"a\\u002d\\ud83d\\ude00\\\\\", \"metadata\": {\"a\":{\"a\":[{},{\"a\":null}]},\"b\\\\ud83d\":1} }\r\n"
	var request AcquireRequest
	if err := Decode([]byte(body), &request); err != nil {
		t.Fatal(err)
	}
	if want := leadership.CandidateID("a-😀\\"); request.CandidateID != want {
		t.Errorf("candidateId %q, want %q", request.CandidateID, want)
	}
}

func TestAMalformedEntryDoesNotSpoilTheBatch(t *testing.T) {
	t.Parallel()
	const body = `{"checks":[{"election":"a","fencingToken":1},7,{"election":"c"},null,{"fencingToken":1},{"election":"e","fencingToken":"1"}]}`
	var checks Checks
	if err := Decode([]byte(body), &checks); err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ election, pointer, detail string }{
		{"a", "", ""},
		{"", "/checks/1", "an entry must be an object, not a number"},
		{"c", "/checks/2/fencingToken", "fencingToken is missing"},
		{"", "/checks/3", "an entry must be an object, not null"},
		{"", "/checks/4/election", "election is missing"},
		{"e", "/checks/5/fencingToken", "fencingToken must be a number, not a string"},
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
		p := NewResult(At("checks", i), entry.Value.Election, leadership.Result{Err: entry.Err}).Error
		if len(p.Errors) != 1 || p.Errors[0].Pointer != want.pointer || p.Detail != want.detail {
			t.Errorf("entry %d has problem %+v, want %q at %q", i, p, want.detail, want.pointer)
		}
	}
}

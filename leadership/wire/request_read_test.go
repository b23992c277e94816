package wire

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// requestAlike requires that a body has the same meaning if it is read without reflection as if
// package json reads it. It reports whether it was read without reflection.
func requestAlike(t *testing.T, body []byte) (renewal, entry, acquire bool) {
	t.Helper()
	var r, r2 LeaseRequest
	if renewal = read(body, &r); renewal {
		if err := decodeAny(body, &r2); err != nil || !cmp.Equal(r, r2) {
			t.Errorf("%q is read without reflection as %+v, and by json as %+v, %v", body, r, r2, err)
		}
	}
	var e, e2 Renewal
	if entry = read(body, &e); entry {
		if err := decodeAny(body, &e2); err != nil || !cmp.Equal(e, e2) {
			t.Errorf("%q is read without reflection as %+v, and by json as %+v, %v", body, e, e2, err)
		}
	}
	var a, a2 AcquireRequest
	if acquire = read(body, &a); acquire {
		err := decodeAny(body, &a2)
		if diff := cmp.Diff(a2, a); err != nil || diff != "" {
			t.Errorf("%q is read by json (-) and without reflection (+) as:\n%s, %v", body, diff, err)
		}
	} else if diff := cmp.Diff(AcquireRequest{}, a); diff != "" {
		t.Errorf("%q is not read without reflection, and is %+v all the same", body, a)
	}
	if !cmp.Equal(r, LeaseRequest{}) && !renewal || !cmp.Equal(e, Renewal{}) && !entry {
		t.Errorf("%q is not read without reflection, and is %+v and %+v all the same", body, r, e)
	}
	return renewal, entry, acquire
}

func TestRequestsAreReadWithoutReflectionAsJSONReadsThem(t *testing.T) {
	t.Parallel()
	const entry = `{"election":"planner","candidateId":"a b","key":"","fencingToken":999999999999999999,"ticket":"t=="}`
	for body, want := range map[string][2]bool{ // a renewal, an entry of a batch
		renewal: {true, false},
		strings.ReplaceAll(renewal, ",", " ,\n\t") + "\r\n":    {true, false},
		strings.Replace(renewal, "1}", `0 , "ticket":"x"}`, 1): {true, false},
		entry: {false, true},
		strings.Replace(renewal, "1}", `1,"report":{"progress":412,"eta":"20m","dependencies":{"bq":"ok"}}}`, 1): {true, false},
		strings.Replace(entry, `"t=="`, `"t==","report" : { "tasks" : 3 , "custom":{} }`, 1):                     {false, true},

		"":                                       {},
		"{":                                      {},
		renewal + "x":                            {},
		renewal[:len(renewal)-1]:                 {},
		strings.Replace(renewal, "1}", "1,}", 1): {},
		strings.Replace(renewal, "1}", "01}", 1): {},
		strings.Replace(renewal, "1}", "1e2}", 1):                            {},
		strings.Replace(renewal, "1}", "9999999999999999999}", 1):            {},
		strings.Replace(renewal, "1}", `1,"fencingToken":1}`, 1):             {},
		strings.Replace(renewal, "1}", `1,"report":null}`, 1):                {},
		strings.Replace(renewal, "1}", `1,"report":{},"report":{}}`, 1):      {},
		strings.Replace(renewal, "1}", `1,"report":{"errors":-1}}`, 1):       {},
		strings.Replace(renewal, "1}", `1,"report":{"custom":{"a":{}}}}`, 1): {},
		strings.Replace(renewal, "agent-7", `agent\u002d7`, 1):               {},
		strings.Replace(renewal, "agent-7", "agent\x7f7", 1):                 {},
		strings.Replace(renewal, `"candidateId"`, `"candidate\u0049d"`, 1):   {},
		strings.Replace(renewal, `"candidateId":"agent-7",`, "", 1):          {},
		strings.Replace(entry, `"election":"planner",`, "", 1):               {true, false},
	} {
		r, e, _ := requestAlike(t, []byte(body))
		if got := [2]bool{r, e}; got != want {
			t.Errorf("%q is read without reflection: %v, want %v", body, got, want)
		}
	}
}

func TestAcquiresAreReadWithoutReflectionAsJSONReadsThem(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		`{"candidateId":"a"}`: true,
		`{"candidateId":"","key":"","leaseDuration":"0s","metadata":{"a":""},"note":"","wait":"0s"}`:                                     true,
		` {"wait" : "1m30s", "note":"<&>" , "metadata" : { "b" : "1", "a":"2" } ,"leaseDuration":"1500ms","key":"k","candidateId":"a"} `: true,
		`{"candidateId":"a","metadata":{"1":"","2":"","3":"","4":"","5":"","6":"","7":"","8":"","9":"","10":""}}`:                        true,
		`{"candidateId":"a","metadata":{"a":1,"b":{"a":{}}}}`:                                                                            false,
		`{"candidateId":"a","metadata":{"a":1,"b":{"a":0}}}`:                                                                             true,

		`{"candidateId":"a","role":"","priority":0,"capabilities":[],"load":0}`:                                true,
		`{"candidateId":"a","role":"king","priority":2147483648,"capabilities":[ "gpu" , "gpu","" ],"load":7}`: true,
		`{"candidateId":"a","priority":-1}`:                                                                    false,
		`{"candidateId":"a","load":1,"load":1}`:                                                                false,
		`{"candidateId":"a","capabilities":["a",]}`:                                                            false,
		`{"candidateId":"a","capabilities":["é"]}`:                                                             false,

		`{}`:                                false,
		`{"candidateId":"a","x":1}`:         false,
		`{"candidateId":"a","wait":"soon"}`: false,
		`{"candidateId":"a","wait":"1s","wait":"1s"}`:          false,
		`{"candidateId":"a","key":null}`:                       false,
		`{"candidateId":"a","metadata":{"a":1.5}}`:             false,
		`{"candidateId":"a","metadata":{"a":}}`:                false,
		`{"candidateId":"a","metadata":{"a":{"b":"","b":""}}}`: false,
		`{"candidateId":"a","metadata":{"a":"1","a":"1"}}`:     false,
		`{"candidateId":"a","metadata":{"a":{}}}`:              true,
		`{"candidateId":"a","metadata":{"a":"\n"}}`:            false,
		`{"candidateId":"a","metadata":{"1":"","2":"","3":"","4":"","5":"","6":"","7":"","8":"","9":"","10":"","11":""}}`: false,
	} {
		if _, _, got := requestAlike(t, []byte(body)); got != want {
			t.Errorf("%q is read without reflection: %v, want %v", body, got, want)
		}
	}
}

func TestReadingARenewalTakesNoMemoryButForItsStrings(t *testing.T) {
	body := []byte(renewal)
	var r LeaseRequest
	if n := testing.AllocsPerRun(100, func() {
		if err := Decode(body, &r); err != nil {
			t.Fatal(err)
		}
	}); n > 2 {
		t.Errorf("%v allocations, want those of the candidate and the key", n)
	}
}

package wire

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// requestAlike is requireReadAlike for a request. It reports as what it was read without
// reflection.
func requestAlike(t *testing.T, body []byte) (renewal, entry, acquire bool) {
	t.Helper()
	taken := requireReadAlike(t, string(body))
	return taken[reflect.TypeFor[*LeaseRequest]()], taken[reflect.TypeFor[*Renewal]()], taken[reflect.TypeFor[*AcquireRequest]()]
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
		strings.Replace(renewal, "1}", "1e2}", 1):                                             {},
		strings.Replace(renewal, "1}", "9999999999999999999}", 1):                             {},
		strings.Replace(renewal, "1}", `1,"fencingToken":1}`, 1):                              {},
		strings.Replace(renewal, "1}", `1,"report":null}`, 1):                                 {},
		strings.Replace(renewal, "1}", `1,"report":{},"report":{}}`, 1):                       {},
		strings.Replace(renewal, "1}", `1,"report":{"errors":-1}}`, 1):                        {true, false},
		strings.Replace(renewal, "1}", `1,"report":{"custom":{"a":{}}}}`, 1):                  {true, false},
		strings.Replace(renewal, "1}", `1,"report":{"a":"\u00e9","b":[null,{"c":-1e2}]}}`, 1): {true, false},
		strings.Replace(renewal, "1}", `1,"report":{"a":1.}}`, 1):                             {},
		strings.Replace(renewal, "1}", `1,"report":[]}`, 1):                                   {},
		strings.Replace(renewal, "1}", `1,"report":{"a":[}]}}`, 1):                            {},
		strings.Replace(renewal, "agent-7", `agent\u002d7\"\\`, 1):                            {true, false},
		strings.Replace(renewal, "agent-7", `agent\ud800`, 1):                                 {},
		strings.Replace(renewal, "agent-7", `agent\`, 1):                                      {},
		strings.Replace(renewal, "agent-7", "agent\x7f7", 1):                                  {true, false},
		strings.Replace(renewal, "agent-7", "agent é", 1):                                     {true, false},
		strings.Replace(renewal, "agent-7", "agent\xc3", 1):                                   {},
		strings.Replace(renewal, "agent-7", "agent\n", 1):                                     {},
		strings.Replace(renewal, `"candidateId"`, `"candidate\u0049d"`, 1):                    {},
		strings.Replace(renewal, `"candidateId":"agent-7",`, "", 1):                           {},
		strings.Replace(entry, `"election":"planner",`, "", 1):                                {true, false},
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
		`{"candidateId":"a","metadata":{"a":1,"b":{"a":{}}}}`:                                                                            true,
		`{"candidateId":"a","metadata":{"a":1,"b":{"a":0}}}`:                                                                             true,

		`{"candidateId":"a","role":"","priority":0,"capabilities":[],"load":0}`:                                true,
		`{"candidateId":"a","role":"king","priority":2147483648,"capabilities":[ "gpu" , "gpu","" ],"load":7}`: true,
		`{"candidateId":"a","priority":-1}`:                                                                    false,
		`{"candidateId":"a","load":1,"load":1}`:                                                                false,
		`{"candidateId":"a","capabilities":["a",]}`:                                                            false,
		`{"candidateId":"a","capabilities":["é"]}`:                                                             true,

		`{}`:                                false,
		`{"candidateId":"a","x":1}`:         false,
		`{"candidateId":"a","wait":"soon"}`: false,
		`{"candidateId":"a","wait":"1s","wait":"1s"}`:                                            false,
		`{"candidateId":"a","key":null}`:                                                         false,
		`{"candidateId":"a","metadata":{"a":1.5}}`:                                               true,
		`{"candidateId":"a","metadata":{"a":1.5,"a":1.5}}`:                                       false,
		`{"candidateId":"a","via":{"election":"b","fencingToken":3,"peer":"eu"},"inherit":true}`: true,
		`{"candidateId":"a","via":{"election":"b"}}`:                                             false,
		`{"candidateId":"a","via":null}`:                                                         false,
		`{"candidateId":"a","inherit":false}`:                                                    true,
		`{"candidateId":"a","inherit":falsey}`:                                                   false,
		`{"candidateId":"a","metadata":{"a":}}`:                                                  false,
		`{"candidateId":"a","metadata":{"a":{"b":"","b":""}}}`:                                   false,
		`{"candidateId":"a","metadata":{"a":"1","a":"1"}}`:                                       false,
		`{"candidateId":"a","metadata":{"a":{}}}`:                                                true,
		`{"candidateId":"a","metadata":{"a":"\n"}}`:                                              true,
		`{"candidateId":"a","metadata":{"1":"","2":"","3":"","4":"","5":"","6":"","7":"","8":"","9":"","10":"","11":""}}`: true,
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
		require.NoError(t, Decode(body, &r))
	}); n > 2 {
		t.Errorf("%v allocations, want those of the candidate and the key", n)
	}
}

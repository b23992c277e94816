package wire

import (
	"strings"
	"testing"
)

// quickAlike holds what is quickly read to what package json reads. It reports whether the body was
// quickly read.
func quickAlike(t *testing.T, body []byte) (renewal, entry bool) {
	t.Helper()
	var r, r2 LeaseRequest
	if renewal = quick(body, &r); renewal {
		if err := decodeAny(body, &r2); err != nil || r != r2 {
			t.Errorf("%q is quickly read as %+v, and by json as %+v, %v", body, r, r2, err)
		}
	}
	var e, e2 Renewal
	if entry = quick(body, &e); entry {
		if err := decodeAny(body, &e2); err != nil || e != e2 {
			t.Errorf("%q is quickly read as %+v, and by json as %+v, %v", body, e, e2, err)
		}
	}
	if r != (LeaseRequest{}) && !renewal || e != (Renewal{}) && !entry {
		t.Errorf("%q is not quickly read, and is %+v and %+v all the same", body, r, e)
	}
	return renewal, entry
}

func TestWhatIsQuicklyReadIsWhatJSONReads(t *testing.T) {
	t.Parallel()
	const entry = `{"election":"planner","candidateId":"a b","key":"","fencingToken":999999999999999999,"ticket":"t=="}`
	for body, want := range map[string][2]bool{ // a renewal, an entry of a batch
		renewal: {true, false},
		strings.ReplaceAll(renewal, ",", " ,\n\t") + "\r\n":    {true, false},
		strings.Replace(renewal, "1}", `0 , "ticket":"x"}`, 1): {true, false},
		entry: {false, true},

		"":                                       {},
		"{}":                                     {},
		"{":                                      {},
		"null":                                   {},
		renewal + "x":                            {},
		renewal + renewal:                        {},
		renewal[:len(renewal)-1]:                 {},
		renewal[:len(renewal)-1] + ",":           {},
		strings.Replace(renewal, "1}", "1,}", 1): {},
		strings.Replace(renewal, "1}", "01}", 1): {},
		strings.Replace(renewal, "1}", "1.0}", 1):                          {},
		strings.Replace(renewal, "1}", "1e2}", 1):                          {},
		strings.Replace(renewal, "1}", "-1}", 1):                           {},
		strings.Replace(renewal, "1}", "9999999999999999999}", 1):          {},
		strings.Replace(renewal, "1}", "null}", 1):                         {},
		strings.Replace(renewal, "1}", `"1"}`, 1):                          {},
		strings.Replace(renewal, "1}", `1,"fencingToken":1}`, 1):           {},
		strings.Replace(renewal, "1}", `1,"more":1}`, 1):                   {},
		strings.Replace(renewal, "agent-7", `agent\u002d7`, 1):             {},
		strings.Replace(renewal, "agent-7", "agent\u20107", 1):             {},
		strings.Replace(renewal, "agent-7", "agent\x007", 1):               {},
		strings.Replace(renewal, "agent-7", "agent\x7f7", 1):               {},
		strings.Replace(renewal, `"agent-7"`, "7", 1):                      {},
		strings.Replace(renewal, `"candidateId"`, `"CandidateId"`, 1):      {},
		strings.Replace(renewal, `"candidateId"`, `"candidate\u0049d"`, 1): {},
		strings.Replace(renewal, `"candidateId":"agent-7",`, "", 1):        {},
		strings.Replace(entry, `"election":"planner",`, "", 1):             {true, false},
	} {
		r, e := quickAlike(t, []byte(body))
		if got := [2]bool{r, e}; got != want {
			t.Errorf("%q is quickly read: %v, want %v", body, got, want)
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

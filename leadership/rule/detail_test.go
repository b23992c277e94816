package rule

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"regent/leadership"
)

// TestEachDetailIsReadAndWrittenAsItIs reads a text of each kind that is stored, and writes it.
func TestEachDetailIsReadAndWrittenAsItIs(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"",
		`{"bad":0,"good":1,"verdict":"good"}`,
		`{"bad":1,"good":0,"verdict":"bad"}`,
		`{"badVerdicts":2,"until":"2026-01-01T12:00:10.000001Z","verdicts":2}`,
		`{"because":"handOver","endsBy":"2026-01-01T12:00:10.5Z","to":"bob"}`,
		`{"because":"preempt","to":"bob"}`,
		`{"bids":2,"last":"ann","others":[{"candidateId":"ann"}],"place":1,"strategy":"roundRobin","winner":{"candidateId":"bob"}}`,
		`{"bids":2,"others":[{"candidateId":"ann","draw":"00ff"}],"place":1,"secret":"00","strategy":"random","winner":{"candidateId":"bob","draw":"01"}}`,
		`{"bids":2,"others":[{"candidateId":"ann","load":1}],"place":1,"present":2,"strategy":"leastLoaded","winner":{"candidateId":"bob","load":0}}`,
		`{"bids":1,"place":1,"strategy":"capability","winner":{"candidateId":"bob","preferred":0,"priority":-1}}`,
		`{"bids":1,"place":1,"strategy":"firstCome","winner":{"candidateId":"bob","since":"2026-01-01T12:00:00Z"}}`,
		`{"budget":0,"child":"jobs.a","children":0,"depth":0}`,
		`{"budget":5,"counter":"tasks","until":"2026-01-01T12:00:10Z","value":6}`,
		`{"calls":10,"errorRate":1e-05,"errors":9}`,
		`{"calls":10,"errorRate":0.25,"errors":9}`,
		`{"candidateId":"bob"}`,
		`{"candidateId":"bob","endsBecause":"maxTerm","override":"ban-3","until":"2026-01-01T13:00:00Z"}`,
		`{"endsBecause":"handOver","to":"bob"}`,
		`{"endsBecause":"stuck","progress":0,"stuckAfterMs":20000,"until":"2026-01-01T12:01:19Z"}`,
		`{"endsBy":"2026-01-01T12:00:00Z"}`,
		`{"endsBy":"2026-01-01T12:00:00Z","newEpoch":true}`,
		`{"from":1}`,
		`{"have":1,"need":2}`,
		`{"leaseDurationMs":30000}`,
		`{"mode":"drain","override":"pause-3","until":"2026-01-01T13:00:00Z"}`,
		`{"override":"ban-3","principal":"<a>&\"b\"\\","until":"2026-01-01T13:00:00Z"}`,
		`{"retireAfterMs":3600000}`,
		`{"twoMayBelieveUntil":"2026-01-01T12:00:00.25Z"}`,
	} {
		if got := detailText((leadership.Event{Detail: text}).ReadDetail()); got != text {
			t.Errorf("%s\nis written as\n%s", text, got)
		}
		assert.NoError(t, validateObject(text, leadership.MaxDetailBytes), text)
	}
}

// TestDetailOfLaterVersionIsReadAsFarAsItIsKnown reads members that have changed, or that this
// program does not know.
func TestDetailOfLaterVersionIsReadAsFarAsItIsKnown(t *testing.T) {
	t.Parallel()
	d := leadership.Event{Detail: `{"because":["preempt"],"new":1,"others":[{"candidateId":"ann","new":1}],"to":"bob"}`}.ReadDetail()
	if d.Because != "" || d.To != "bob" || !slices.Equal(d.Others, []leadership.ShownBid{{CandidateID: "ann"}}) {
		t.Errorf("it is read as %+v", d)
	}
	if d := (leadership.Event{Detail: "nonsense"}).ReadDetail(); detailText(d) != "" {
		t.Errorf("nonsense is read as %+v", d)
	}
}

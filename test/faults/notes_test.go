package faults

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/test/checker"
	"regent/test/faults/record"
)

func TestACallThatAKilledAgentHadSentHasAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	out, in, err := os.Pipe()
	require.NoError(t, err)
	r := record.NewRecorder(0, record.LinesTo(in))
	answered := r.Sent(checker.Call{Request: "answered"})
	r.Sent(checker.Call{Request: "under way"})
	r.Call(checker.Call{Request: "answered", Answered: 1}, answered)
	in.Close()

	var heard notes
	heard.listen(out)
	if len(heard.so.Calls) != 2 || heard.so.Calls[0].Request != "answered" || heard.so.Calls[0].Code != "" {
		t.Fatalf("calls: %+v", heard.so.Calls)
	}
	if c := heard.so.Calls[1]; c.Request != "under way" || c.Code != leadership.OutcomeUnknown || c.Answered != checker.Forever {
		t.Errorf("the call under way is recorded as %+v", c)
	}
}

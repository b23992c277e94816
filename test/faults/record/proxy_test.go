package record_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/wire"
	"regent/test/checker"
	"regent/test/faults/record"
)

// through makes an acquire through a tap to a server, nil for one that is gone, and returns what
// was written down, and the caller's error.
func through(t *testing.T, handler http.HandlerFunc) ([]record.Line, error) {
	t.Helper()
	server := httptest.NewServer(handler)
	target := strings.TrimPrefix(server.URL, "http://")
	if handler == nil {
		server.Close()
	} else {
		t.Cleanup(server.Close)
	}
	var lines []record.Line
	line, err := record.NewProxy("ann", target, record.NewRecorder(0, func(l record.Line) { lines = append(lines, l) }))
	require.NoError(t, err)
	c, err := client.New(client.Config{Server: line.URL(), HTTP: &http.Client{Timeout: 10 * time.Second}})
	require.NoError(t, err)
	key := leadership.NewKey()
	_, err = c.Acquire(t.Context(), leadership.AcquireRequest{Election: "e", CandidateID: "ann", Key: &key, LeaseDuration: time.Second})
	line.Close()
	if len(lines) > 0 {
		if s := lines[0].Sent; s == nil || s.Candidate != "ann" || s.Answered != checker.Forever || s.Code != leadership.OutcomeUnknown || lines[0].N != 1 {
			t.Fatalf("it is written down as %+v before it leaves", lines[0])
		}
		lines = lines[1:]
	}
	return lines, err
}

func grant(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", wire.ContentType)
	json.NewEncoder(w).Encode(wire.Grant{Lease: wire.Lease{
		Election: "e", State: leadership.Held, LeaderID: "ann", FencingToken: 7, Revision: 9,
		LeaseDuration: wire.Duration(time.Second), ExpiresInMs: new(int64(900)),
	}})
}

func TestACallIsWrittenDownWithItsAnswer(t *testing.T) {
	t.Parallel()
	lines, err := through(t, grant)
	if err != nil || len(lines) != 1 || lines[0].Call == nil || lines[0].N != 1 {
		t.Fatalf("error %v, lines %+v", err, lines)
	}
	c := lines[0].Call
	if c.Verb != checker.Acquire || c.Candidate != "ann" || c.Request != "ann-1" || c.Lease != time.Second || c.Code != "" || c.Answered < c.Asked {
		t.Errorf("it is written down as %+v", c)
	}
	if c.Answer == nil || c.Answer.Token != 7 || c.Answer.Revision != 9 {
		t.Errorf("its answer is written down as %+v", c.Answer)
	}
}

func TestACallWhoseAnswerIsCutIsUnknownToBoth(t *testing.T) {
	t.Parallel()
	lines, err := through(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		w.Write([]byte("{"))
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	if !errors.Is(err, leadership.OutcomeUnknown) {
		t.Errorf("error %v, want %v", err, leadership.OutcomeUnknown)
	}
	if len(lines) != 1 || lines[0].Call == nil || lines[0].Call.Answered != checker.Forever || lines[0].Call.Code != leadership.OutcomeUnknown {
		t.Errorf("it is written down as %+v", lines)
	}
}

func TestACallThatNeverLeftIsNotWrittenDown(t *testing.T) {
	t.Parallel()
	if lines, err := through(t, nil); err == nil || len(lines) > 0 {
		t.Errorf("error %v, lines %+v", err, lines)
	}
}

func TestARefusalIsWrittenDownWithItsCode(t *testing.T) {
	t.Parallel()
	lines, err := through(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", wire.ProblemType)
		w.WriteHeader(http.StatusConflict)
		found := &leadership.Lease{Election: "e", State: leadership.Vacant, Revision: 3}
		json.NewEncoder(w).Encode(wire.NewProblem(&leadership.Error{Code: leadership.LeaseHeld, Lease: found}))
	})
	if !errors.Is(err, leadership.LeaseHeld) || len(lines) != 1 || lines[0].Call == nil {
		t.Fatalf("error %v, lines %+v", err, lines)
	}
	if c := lines[0].Call; c.Code != leadership.LeaseHeld || c.Answer == nil || c.Answer.Revision != 3 {
		t.Errorf("it is written down as %+v", c)
	}
}

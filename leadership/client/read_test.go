package client_test

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"regent/leadership"
	"regent/leadership/client"
)

func TestReadingHasItsAge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		request    leadership.ReadRequest
		age        []string // the header
		bound      string   // in the document, in milliseconds
		query      string
		wantAge    time.Duration
		wantBound  time.Duration
		unbelieved string
	}{
		{name: "of the store", request: leadership.ReadRequest{Strong: true}, query: "consistency=strong"},
		{name: "of a cache", age: []string{"2"}, bound: "5000", wantAge: 2 * time.Second, wantBound: 5 * time.Second},
		{name: "rounded up", age: []string{"1"}, bound: "300", wantAge: 300 * time.Millisecond, wantBound: 300 * time.Millisecond},
		{name: "it does not say", bound: "5000", wantAge: 5 * time.Second, wantBound: 5 * time.Second},
		{name: "what was known", request: leadership.ReadRequest{Known: 4}, query: "minRevision=4"},
		{name: "more than was known", request: leadership.ReadRequest{Known: 3, Strong: true}, query: "consistency=strong&minRevision=3"},
		{name: "less than was known", request: leadership.ReadRequest{Known: 5}, query: "minRevision=5", unbelieved: "it is at revision 4, but revision 5 was known"},
		{name: "old, and asked for as it is", request: leadership.ReadRequest{Strong: true}, bound: "1", query: "consistency=strong", unbelieved: "a strong read was asked for"},
		{name: "older than anything", bound: "3600001", unbelieved: "it may be 3600001 ms old"},
	} {
		document := strings.Replace(leaseOf("planner", "ann", "1"), `"revision":1`, `"revision":4`, 1)
		if c.bound != "" {
			document = strings.TrimSuffix(document, "}") + `,"maxStalenessMs":` + c.bound + "}"
		}
		cl := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.RawQuery != c.query || r.URL.Path != "/v1/elections/planner" {
				t.Errorf("%s: asked %s", c.name, r.URL)
			}
			w.Header()["Age"] = c.age
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, document)
		})
		c.request.Election = "planner"
		got, err := cl.Read(t.Context(), c.request)
		switch {
		case c.unbelieved != "":
			if !errors.Is(err, leadership.StoreUnavailable) || !strings.Contains(err.Error(), c.unbelieved) {
				t.Errorf("%s: %v; want that it is not believed: %s", c.name, err, c.unbelieved)
			}
		case err != nil || got.Revision != 4 || got.Age != c.wantAge || got.Bound != c.wantBound:
			t.Errorf("%s: age %v, bound %v, %v; want %v and %v", c.name, got.Age, got.Bound, err, c.wantAge, c.wantBound)
		}
	}
}

func TestGetIsAStrongRead(t *testing.T) {
	t.Parallel()
	c := answering(t, strings.TrimSuffix(leaseOf("planner", "ann", "1"), "}")+`,"maxStalenessMs":5000}`)
	_, err := c.Get(t.Context(), "planner")
	assert.ErrorIs(t, err, leadership.StoreUnavailable, "a hint")
}

// slowly answers an acquire after that time.
func slowly(d time.Duration) *scriptedServer {
	return &scriptedServer{acts: []http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		rest(r, d)
		replying(http.StatusOK, "application/json", leaseOf("planner", "ann", "1"))(w, r)
	}}}
}

func TestACallMayTakeHalfAMinuteBesideItsWait(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ wait, takes, limit time.Duration }{
		{0, 29 * time.Second, 30 * time.Second},
		{0, 31 * time.Second, 30 * time.Second},
		{time.Minute, 91 * time.Second, 90 * time.Second},
		{-time.Minute, 29 * time.Second, 30 * time.Second}, // the server refuses it
		{1<<63 - 1, 89 * time.Second, 90 * time.Second},    // and this
	} {
		synctest.Test(t, func(t *testing.T) {
			cl := newClient(t, client.Config{Server: "http://localhost"})
			cl.Through(slowly(c.takes))
			key := leadership.NewKey()
			began := time.Now()
			_, err := cl.Acquire(t.Context(), leadership.AcquireRequest{Election: "planner", CandidateID: "ann", Key: &key, Wait: c.wait})
			if late := c.takes > c.limit; late != errors.Is(err, leadership.OutcomeUnknown) || late != (err != nil) {
				t.Errorf("a wait of %v that takes %v: %v", c.wait, c.takes, err)
			}
			if took := time.Since(began); took != min(c.takes, c.limit) {
				t.Errorf("a wait of %v that takes %v: over after %v", c.wait, c.takes, took)
			}
		})
	}
}

func TestTimeoutOfTheCallersClientIsTheOnlyLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		key := leadership.NewKey()
		r := leadership.AcquireRequest{Election: "planner", CandidateID: "ann", Key: &key, Wait: time.Minute}
		for timeout, fine := range map[time.Duration]bool{0: true, 10 * time.Minute: true, time.Minute: false} {
			cl := newClient(t, client.Config{Server: "http://localhost", HTTP: &http.Client{Transport: slowly(5 * time.Minute), Timeout: timeout}})
			if _, err := cl.Acquire(t.Context(), r); (err == nil) != fine {
				t.Errorf("timeout %v: %v", timeout, err)
			}
		}
	})
}

func TestGrantHasTheTimeItWaited(t *testing.T) {
	t.Parallel()
	key := leadership.NewKey()
	for _, c := range []struct {
		wait   time.Duration
		waited int
		want   time.Duration
	}{
		{30 * time.Second, 0, 0},
		{30 * time.Second, 12500, 12500 * time.Millisecond},
		{30 * time.Second, 30001, 30 * time.Second}, // a wait longer than asked for is not believed
		{0, 5000, 0},
		{30 * time.Second, -5000, 0},
		{30 * time.Second, 1<<63 - 1, 30 * time.Second},
	} {
		cl := answering(t, strings.TrimSuffix(leaseOf("planner", "ann", "1"), "}")+`,"waitedMs":`+strconv.Itoa(c.waited)+"}")
		g, err := cl.Acquire(t.Context(), leadership.AcquireRequest{Election: "planner", CandidateID: "ann", Key: &key, Wait: c.wait})
		if err != nil || g.Waited != c.want {
			t.Errorf("a wait of %v, waited %d ms: %v, %v; want %v", c.wait, c.waited, g.Waited, err, c.want)
		}
	}
}

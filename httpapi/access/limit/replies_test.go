package limit_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"regent/httpapi"
	"regent/httpapi/access/limit"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
)

// large has a snapshot of 1 MiB, or of 5.
type large struct{ instance.Service }

func (large) ReadSnapshot(_ context.Context, e leadership.Election) (leadership.JournalSnapshot, error) {
	size := 1 << 20
	if e == "larger" {
		size *= 5
	}
	return leadership.JournalSnapshot{Election: e, UpTo: 1, Data: json.RawMessage(`"` + strings.Repeat("x", size) + `"`)}, nil
}

func (large) Acquire(_ context.Context, r leadership.AcquireRequest) (leadership.Grant, error) {
	data := json.RawMessage(`"` + strings.Repeat("x", leadership.MaxCheckpointBytes) + `"`)
	return leadership.Grant{Inherited: &leadership.Inheritance{Checkpoint: leadership.Checkpoint{Data: data}}}, nil
}

// stalled is a reader that reads no large reply until it is told to.
type stalled struct {
	*httptest.ResponseRecorder
	reads chan struct{}
}

func (s stalled) Write(p []byte) (int, error) {
	if len(p) > 64<<10 {
		<-s.reads
	}
	return s.ResponseRecorder.Write(p)
}

// Of 32 MiB each principal has 4.
func TestRepliesThatAreNotReadAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := httpapi.New(httpapi.Config{Service: large{}, Reply: limit.NewReplies(0, func(context.Context, bool) {}).Enter})
		ask := func(who, method, path, body string) (reads chan struct{}, reply *httptest.ResponseRecorder) {
			s := stalled{httptest.NewRecorder(), make(chan struct{})}
			r := httptest.NewRequestWithContext(by(t.Context(), who), method, path, strings.NewReader(body))
			r.Header.Set("Content-Type", wire.ContentType)
			go h.ServeHTTP(s, r)
			synctest.Wait()
			return s.reads, s.ResponseRecorder
		}
		snapshot := func(who string, e leadership.Election) (chan struct{}, *httptest.ResponseRecorder) {
			return ask(who, http.MethodGet, wire.Path(e, wire.JournalPath+wire.SnapshotPath), "")
		}
		var open []chan struct{}
		want := func(who string, e leadership.Election, refused bool) {
			t.Helper()
			reads, reply := snapshot(who, e)
			if was := reply.Code == http.StatusTooManyRequests && reply.Header().Get("Retry-After") != ""; was != refused {
				t.Errorf("%s reads %s: status %d: %s", who, e, reply.Code, reply.Body)
			}
			if !refused {
				open = append(open, reads)
			}
		}
		for range 3 {
			want("ann", "jobs", false)
		}
		want("ann", "jobs", true)
		want("bob", "larger", false)
		want("bob", "jobs", true)
		if _, reply := ask("bob", http.MethodPost, wire.Path("jobs", wire.Acquire), `{"candidateId":"bob"}`); reply.Code != http.StatusGatewayTimeout {
			t.Errorf("an acquire that was done: status %d, want that its outcome is unknown: %s", reply.Code, reply.Body)
		}
		close(open[0])
		synctest.Wait()
		want("ann", "jobs", false)
		for _, reads := range open[1:] {
			close(reads)
		}
	})
}

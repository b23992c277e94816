package client_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"

	"regent/leadership"
	"regent/leadership/client"
)

func TestWatchOfOneResumesAfterEveryFailure(t *testing.T) {
	t.Parallel()
	begun := []string{snapshot("planner", 7), event("planner", 8)}
	after := func(texts ...string) []string { return append(append([]string{}, begun...), texts...) }
	half := event("planner", 9)[:40]
	for name, broken := range map[string]http.HandlerFunc{
		"the connection ends":                    ending(begun...),
		"the connection breaks":                  breaking(begun...),
		"it breaks within an event":              breaking(after(half)...),
		"it ends before the empty line":          ending(after(strings.TrimSuffix(event("planner", 9), "\n"))...),
		"it falls silent":                        streaming(begun...),
		"the server has had enough":              streaming(after(end("limit", "8"))...),
		"the server has an unknown reason":       streaming(after(end("whim", "8"))...),
		"an end with another cursor":             streaming(after(end("limit", "9"))...),
		"an end that cannot be read":             streaming(after("event: end\ndata: later\n\n")...),
		"a snapshot with another id":             streaming(after(strings.Replace(snapshot("planner", 9), "id: 9", "id: 10", 1))...),
		"garbage":                                streaming(after("data: {\n\n")...),
		"an event of another election":           streaming(after(event("scribe", 9))...),
		"an event with another's id":             streaming(after(eventAt("planner", 9, "10"))...),
		"an event without an id":                 streaming(snapshot("planner", 7), strings.Replace(event("planner", 8), "id: 8", "id", 1)),
		"a snapshot of another election":         streaming(after(snapshot("scribe", 9))...),
		"an event that was left out":             streaming(after(event("planner", 10))...),
		"an endless line":                        streaming(after("data: " + strings.Repeat("x", 2*client.MaxMessage))...),
		"what was told again":                    ending(after(event("planner", 8), event("planner", 7), event("planner", 1), snapshot("planner", 8), snapshot("planner", 3))...),
		"something of a later version":           ending(after("event: news\nid: 99\ndata: x\n\n", "id: 99\n\n")...),
		"a stream that says that it is ready":    ending(after(ready(1, "99"))...),
		"an event in which a comment is, and CR": ending(snapshot("planner", 7), strings.ReplaceAll(event("planner", 8), "\n", "\r: ping\r\n"), "\r"),
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &scriptedServer{acts: []http.HandlerFunc{broken, problem(503, "STORE_UNAVAILABLE"), streaming(event("planner", 8), event("planner", 9))}}
			want, cursors := []string{"planner is at 7", "planner 8", "planner 9"}, []string{"", "8", "8"}
			if name == "an event without an id" {
				cursors = []string{"", "7", "7"}
			}
			got := watch(t.Context(), s.client(t), one, 3)
			if diff := cmp.Diff(want, got.words); diff != "" || !errors.Is(got.err, errEnough) {
				t.Errorf("%s: ends with %v (-want +got)\n%s", name, got.err, diff)
			}
			assert.Empty(t, cmp.Diff(cursors, s.cursors()), "%s: it resumed after (-want +got)", name)
		})
	}
}

func TestWatchOfAllResumesAfterEveryFailure(t *testing.T) {
	t.Parallel()
	begun := []string{snapshotAmong("pa", 7), snapshotAmong("pb", 2), ready(2, "T1"), eventAt("pa", 8, "T2")}
	after := func(texts ...string) []string { return append(append([]string{}, begun...), texts...) }
	for name, c := range map[string]struct {
		broken http.HandlerFunc
		cursor string
	}{
		"the connection breaks": {breaking(begun...), "T2"},
		// nothing happened until then
		"the server has had enough":          {streaming(after(end("limit", "T9"))...), "T9"},
		"garbage":                            {streaming(after("data: {\n\n")...), "T2"},
		"a negative revision":                {streaming(after(eventAt("pc", -1, "T3"))...), "T2"},
		"a snapshot of another prefix":       {streaming(after(snapshotAmong("q", 1))...), "T2"},
		"an event whose id is no header":     {streaming(after(eventAt("pb", 3, "T\x01"))...), "T2"},
		"an event that was left out":         {streaming(after(eventAt("pb", 4, "T3"))...), "T2"},
		"what was told again counts":         {breaking(after(eventAt("pb", 2, "T3"))...), "T3"},
		"it is ready, but not all were told": {streaming(after(ready(1, "T3"))...), "T2"},
		"it is ready, without a cursor":      {streaming(after(strings.Replace(ready(0, "x"), "id: x", "id", 1))...), "T2"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &scriptedServer{acts: []http.HandlerFunc{c.broken, streaming(eventAt("pa", 8, "T2"), eventAt("pb", 3, "T9"))}}
			got := watch(t.Context(), s.client(t), client.WatchRequest{Prefix: "p"}, 5)
			if diff := cmp.Diff([]string{"pa is at 7", "pb is at 2", "ready", "pa 8", "pb 3"}, got.words); diff != "" || !errors.Is(got.err, errEnough) {
				t.Errorf("%s: ends with %v (-want +got)\n%s", name, got.err, diff)
			}
			assert.Empty(t, cmp.Diff([]string{"", c.cursor}, s.cursors()), "%s: it resumed after (-want +got)", name)
		})
	}
}

func TestAnElectionThatWasNeverSeenCanBeWatched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scriptedServer{acts: []http.HandlerFunc{
			streaming(end("limit", "0")), streaming(event("planner", 2)), breaking(ping), streaming(event("planner", 1), event("planner", 2)),
		}}
		got := watch(t.Context(), s.client(t), one, 2)
		if diff := cmp.Diff([]string{"planner 1", "planner 2"}, got.words); diff != "" || !errors.Is(got.err, errEnough) {
			t.Errorf("ends with %v (-want +got)\n%s", got.err, diff)
		}
		assert.Empty(t, cmp.Diff([]string{"", "0", "0", "0"}, s.cursors()), "it resumed after (-want +got)")
	})
}

func TestIncompleteInitialStateIsNotReported(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]http.HandlerFunc{
		"the connection breaks":       breaking(snapshotAmong("gone", 4), snapshotAmong("kept", 7)),
		"not all that it speaks of":   streaming(snapshotAmong("gone", 4), ready(2, "T0")),
		"an event comes before":       streaming(snapshotAmong("gone", 4), eventAt("gone", 5, "T0")),
		"the stream ends before":      streaming(snapshotAmong("gone", 4), end("limit", "T0")),
		"it is ready, in its own way": streaming(snapshotAmong("gone", 4), "event: ready\nid: T0\ndata: 1\n\n"),
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &scriptedServer{acts: []http.HandlerFunc{broken, streaming(snapshotAmong("kept", 7), ready(1, "T1"))}}
			got := watch(t.Context(), s.client(t), client.WatchRequest{}, 2)
			assert.Empty(t, cmp.Diff([]string{"kept is at 7", "ready"}, got.words), "%s (-want +got)", name)
			assert.Empty(t, cmp.Diff([]string{"", ""}, s.cursors()), "%s: it resumed after (-want +got)", name)
		})
	}
}

func TestTransientErrorsAreRetried(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]http.HandlerFunc{
		"the store is away":                 problem(503, "STORE_UNAVAILABLE"),
		"a front end without a server":      replying(502, "text/html", "<h1>Bad gateway"),
		"nothing at all":                    replying(204, "", ""),
		"an error that looks like a stream": replying(503, "text/event-stream", snapshot("planner", 99)),
		"a connection that breaks":          func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"a server that hangs":               func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"a server that hangs in a problem":  func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(503); <-r.Context().Done() },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &scriptedServer{acts: []http.HandlerFunc{act, act, streaming(snapshot("planner", 7))}}
			got := watch(t.Context(), s.client(t), one, 1)
			if !errors.Is(got.err, errEnough) || len(s.requests) != 3 || got.words[0] != "planner is at 7" {
				t.Errorf("%s: %v after %d requests, told %q", name, got.err, len(s.requests), got.words)
			}
		})
	}
}

func TestPermanentErrorsEndAWatch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		act  http.HandlerFunc
		code leadership.Code // "" for a reply that is not Regent's
	}{
		"a history that is cut":           {problem(410, "HISTORY_COMPACTED"), leadership.HistoryCompacted},
		"another server":                  {replying(404, "text/html", "<h1>Not here"), ""},
		"a redirect":                      {replying(307, "text/html", "moved"), ""},
		"a front end that refuses":        {replying(403, "text/html", "no"), "PERMISSION_DENIED"},
		"a stream that cannot be resumed": {streaming(end("compacted", "9")), leadership.HistoryCompacted},
		"a stream that leaves one out":    {streaming(snapshot("planner", 7), event("planner", 9)), leadership.HistoryCompacted},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &scriptedServer{acts: []http.HandlerFunc{c.act}}
			got := watch(t.Context(), s.client(t), one, 100)
			if c.code != "" && !errors.Is(got.err, c.code) || c.code == "" && !errors.As(got.err, new(*client.ReplyError)) {
				t.Errorf("%s: %v", name, got.err)
			}
			if n := len(s.requests); n > 2 || n == 2 && name != "a stream that leaves one out" {
				t.Errorf("%s: %d requests", name, n)
			}
		})
	}
}

func TestPingKeepsAStreamAlive(t *testing.T) {
	t.Parallel()
	drip := func(w http.ResponseWriter, r *http.Request) {
		tell(w, snapshot("planner", 7))
		for text := event("planner", 8); r.Context().Err() == nil; text = text[1:] {
			rest(r, 10*time.Second)
			io.WriteString(w, text[:1])
		}
	}
	for name, c := range map[string]struct {
		act  http.HandlerFunc
		want time.Duration // after which the next connection is made
	}{
		"nothing comes": {streaming(snapshot("planner", 7)), 45 * time.Second},
		"pings come for a while": {func(w http.ResponseWriter, r *http.Request) {
			tell(w, snapshot("planner", 7))
			for range 100 {
				rest(r, 44*time.Second)
				io.WriteString(w, ping)
			}
			<-r.Context().Done()
		}, 100*44*time.Second + 45*time.Second},
		"a line comes byte by byte": {drip, 45 * time.Second},
		"the server hangs":          {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 45 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &scriptedServer{acts: []http.HandlerFunc{c.act, problem(400, "INVALID_ARGUMENT")}}
			var said error
			r := one
			r.Connection = func(err error) {
				if err != nil {
					said = err
				}
			}
			watch(t.Context(), s.client(t), r, 100)
			if got := s.pauses()[0]; got < c.want || got > c.want+100*time.Millisecond {
				t.Errorf("%s: another connection after %v, want %v", name, got, c.want)
			}
			if !errors.Is(said, leadership.StoreUnavailable) || !strings.Contains(said.Error(), "nothing arrived for 45s") {
				t.Errorf("%s: %v", name, said)
			}
		})
	}
}

func TestPausesBetweenTriesGrow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		acts := make([]http.HandlerFunc, 12)
		for i := range acts {
			acts[i] = problem(500, "INTERNAL")
		}
		fine := len(acts)
		acts = append(acts, breaking(snapshot("planner", 7)), problem(500, "INTERNAL"), problem(500, "INTERNAL"), problem(400, "INVALID_ARGUMENT"))
		s := &scriptedServer{acts: acts}
		watch(t.Context(), s.client(t), one, 100)
		most := 100 * time.Millisecond
		for i, got := range s.pauses() {
			if i == fine {
				most = 100 * time.Millisecond // news came in between
			}
			if got < most/2 || got > most {
				t.Errorf("pause %d is %v, want %v to %v", i, got, most/2, most)
			}
			most = min(2*most, 10*time.Second)
		}
	})
}

func TestAStreamThatEndsAsPlannedIsResumedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scriptedServer{acts: []http.HandlerFunc{
			problem(500, "INTERNAL"), problem(500, "INTERNAL"), problem(500, "INTERNAL"),
			streaming(end("limit", "0")), streaming(end("draining", "0")), streaming(end("limit", "0")), streaming(end("limit", "0")), problem(500, "INTERNAL"), problem(400, "INVALID_ARGUMENT"),
		}}
		var told []error
		r := one
		r.Connection = func(err error) { told = append(told, err) }
		watch(t.Context(), s.client(t), r, 100)
		for _, pause := range s.pauses()[3:] {
			if pause > 100*time.Millisecond {
				t.Errorf("a pause of %v", pause)
			}
		}
		for i, err := range told {
			if failed := i < 3 || i == 7; (err != nil) != failed {
				t.Errorf("told %v as number %d", err, i)
			}
		}
	})
}

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	busy := func(seconds string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", seconds)
			replying(503, "text/plain", "busy")(w, r)
		}
	}
	document := func(ms string) http.HandlerFunc {
		return replying(503, "application/problem+json", `{"status":503,"title":"No","detail":"no","code":"DRAINING","retryAfterMs":`+ms+`}`)
	}
	for name, c := range map[string]struct {
		act  http.HandlerFunc
		want time.Duration
	}{
		"a problem":              {document("2500"), 2500 * time.Millisecond},
		"a front end":            {busy("7"), 7 * time.Second},
		"for longer than useful": {busy("86400"), time.Minute},
		"for less than no time":  {busy("-5"), 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &scriptedServer{acts: []http.HandlerFunc{c.act, problem(400, "INVALID_ARGUMENT")}}
			watch(t.Context(), s.client(t), one, 1)
			if got := s.pauses()[0]; got < c.want+50*time.Millisecond || got > c.want+100*time.Millisecond {
				t.Errorf("%s: a pause of %v, want %v and a little", name, got, c.want)
			}
		})
	}
}

func TestHTTPTimeoutDoesNotApplyToStreams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scriptedServer{acts: []http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
			tell(w, snapshot("planner", 7))
			rest(r, 40*time.Second)
			io.WriteString(w, event("planner", 8))
			<-r.Context().Done()
		}}}
		c := newClient(t, client.Config{Server: "http://localhost", HTTP: &http.Client{Transport: s, Timeout: time.Second}})
		if got := watch(t.Context(), c, one, 2); len(s.requests) != 1 {
			t.Errorf("%d connections for %v", len(s.requests), got.words)
		}
	})
}

func FuzzNoStreamMisleadsAWatch(f *testing.F) {
	for _, text := range []string{
		snapshot("planner", 7) + event("planner", 8) + ping + event("planner", 9) + end("limit", "9"),
		snapshotAmong("pa", 7) + ready(1, "T1") + eventAt("pa", 8, "T2") + eventAt("pb", 1, "T3") + end("compacted", "T3"),
		event("planner", 1) + event("planner", 3) + event("scribe", 1), "data: {}\n\nevent: ready\nid: a\ndata: {\"elections\":0}\n\n",
	} {
		f.Add([]byte(text), true)
		f.Add([]byte(text), false)
	}
	f.Fuzz(func(t *testing.T, text []byte, all bool) {
		synctest.Test(t, func(t *testing.T) {
			r := client.WatchRequest{Election: "planner"}
			if all {
				r = client.WatchRequest{Prefix: "p"}
			}
			s := &scriptedServer{acts: []http.HandlerFunc{func(w http.ResponseWriter, _ *http.Request) {
				tell(w)
				io.Copy(w, bytes.NewReader(text))
			}, problem(410, "HISTORY_COMPACTED")}}
			last := map[leadership.Election]leadership.Revision{}
			for n, err := range s.client(t).Watch(t.Context(), r) {
				if err != nil || n.Ready {
					continue
				}
				e, revision := about(n)
				before, known := last[e]
				if !all && e != "planner" || all && e[0] != 'p' || known && (revision <= before || n.Event != nil && revision != before+1) {
					t.Errorf("it yields %s at %d after %d", e, revision, before)
				}
				last[e] = revision
			}
			if cursor := s.cursors()[len(s.requests)-1]; strings.ContainsFunc(cursor, func(r rune) bool { return r <= ' ' || r > '~' }) {
				t.Errorf("it resumes after %q", cursor)
			}
		})
	})
}

// about returns what the news is about.
func about(n client.News) (leadership.Election, leadership.Revision) {
	if n.Lease != nil {
		return n.Lease.Election, n.Lease.Revision
	}
	return n.Event.Election, n.Event.Revision
}

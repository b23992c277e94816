package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/client/clienttest"
	"regent/leadership/wire"
)

func TestACheckpointIsInheritedByTheNextLeader(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		who := named("ann")
		who.Inherit = true
		first := lead(t, server.Client(who))
		if first.Inherited() != nil {
			t.Errorf("the first leader inherits %+v", first.Inherited())
		}
		assert.ErrorIs(t, first.Checkpoint(t.Context(), "all", strings.Repeat("x", leadership.MaxCheckpointBytes)), leadership.PayloadTooLarge, "a checkpoint that is too large")
		assert.ErrorIs(t, first.Checkpoint(t.Context(), "all", make(chan int)), leadership.InvalidArgument, "a checkpoint that is no JSON")
		assert.ErrorIs(t, first.Checkpoint(t.Context(), "all", json.RawMessage("\"\xff\"")), leadership.InvalidArgument, "a checkpoint that is not in UTF-8")
		whole := strings.Repeat("<", leadership.MaxCheckpointBytes-2) // encoding/json escapes it
		for _, data := range []any{whole, map[string]int{"page": 3}} {
			require.NoError(t, first.Checkpoint(t.Context(), "page 3", data))
		}
		first.Resign(t.Context())
		assert.ErrorIs(t, first.Checkpoint(t.Context(), "page 4", 4), client.ErrResigned, "after its end")
		who.ID = "bob"
		second := lead(t, server.Client(who))
		if i := second.Inherited(); i == nil || i.LeaderID != "ann" || i.Task != "page 3" || string(i.Data) != `{"page":3}` || i.Token != 1 || i.EndedBecause != leadership.EndsReleased {
			t.Errorf("the next leader inherits %+v", i)
		}
		assert.NoError(t, second.CheckpointAt(t.Context(), "page 5", "gs://b/o", ""))
		second.Resign(t.Context())
		if c, err := server.Client(client.Candidate{}).Checkpoint(t.Context(), "reports"); err != nil || c.URI != "gs://b/o" {
			t.Errorf("the checkpoint is %+v, %v", c, err)
		}
	})
}

// A machine was suspended with the answer in its buffers, so no timer has fired yet.
func TestAnEffectIsNotNewOnceTheLeaseIsOver(t *testing.T) {
	for suffix, want := range map[string]error{":begin": client.ErrExpired, ":finish": nil} { // what is done is done
		t.Run(suffix, func(t *testing.T) {
			bubble(t, func(t *testing.T, server *clienttest.Server) {
				config := server.Config()
				clock, suspended := config.Clock, atomic.Int64{}
				config.Candidate, config.Clock = named("ann"), func() time.Duration { return clock() + time.Duration(suspended.Load()) }
				config.HTTP = through(config.HTTP, func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
					response, err := send()
					if strings.HasSuffix(r.URL.Path, suffix) {
						suspended.Store(int64(time.Minute))
					}
					return response, err
				})
				l := lead(t, newClient(t, config))
				e, err := l.BeginEffect(t.Context(), "mail")
				if err == nil {
					err = l.FinishEffect(t.Context(), "mail", nil)
				}
				if !errors.Is(err, want) || (e.State == leadership.EffectNew) != (want == nil) {
					t.Errorf("the answer came after the lease: %v, effect %q", err, e.State)
				}
				l.Resign(t.Context())
			})
		})
	}
}

func TestAnAppendOfUnknownOutcomeIsFoundOutByTheSameCall(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		var lose atomic.Bool
		l := lead(t, over(t, server, named("ann"), func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			response, err := send()
			if strings.HasSuffix(r.URL.Path, wire.Append) && lose.Load() {
				return nil, errLostReply
			}
			return response, err
		}))
		j, err := l.Journal(t.Context())
		require.NoError(t, err)
		lose.Store(true)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := j.Append(short, client.Entry{Data: "a"}); !errors.Is(err, leadership.OutcomeUnknown) || j.Index() != 0 {
			t.Errorf("without an answer: %v, index %d", err, j.Index())
		}
		lose.Store(false)
		_, err = j.Append(t.Context(), client.Entry{Data: "b"})
		assert.ErrorIs(t, err, leadership.IndexMismatch, "another append")
		if at, err := j.Append(t.Context(), client.Entry{Data: "a"}); err != nil || at != 1 {
			t.Errorf("the same append: %d, %v", at, err)
		}
		if at, err := j.Append(t.Context(), client.Entry{Data: "b"}); err != nil || at != 2 {
			t.Errorf("the next append: %d, %v", at, err)
		}
		many := make([]client.Entry, leadership.MaxEntries+1)
		if _, err := j.Append(t.Context(), many...); !errors.Is(err, leadership.InvalidArgument) || j.Index() != 2 {
			t.Errorf("more entries than one append takes: %v, index %d", err, j.Index())
		}
		l.Resign(t.Context())
	})
}

// A follower's calls and connections break all the time, leaders change, and the journal is
// compacted.
func TestAFollowerSeesEveryIndexOnceOverCutsLeadersAndSnapshots(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		const each, leaders = 60, 3
		follow := func(c *client.Client, last leadership.Index) (snapshots int) {
			for item, err := range c.Follow(t.Context(), "reports", last) {
				if err != nil {
					t.Errorf("after %d: %v", last, err)
					break
				}
				if s := item.Snapshot; s != nil {
					if snapshots++; s.UpTo <= last || string(s.Data) != fmt.Sprint(s.UpTo) {
						t.Errorf("a snapshot %+v after %d", s, last)
					}
				} else if e := item.Entry; e.Index != last+1 || string(e.Data) != fmt.Sprint(e.Index) {
					t.Errorf("entry %+v after %d", e, last)
				}
				if last = item.Index(); last == each*leaders {
					break
				}
			}
			return snapshots
		}
		calls := 0
		reader := over(t, server, named("cy"), func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			if calls++; calls%4 == 0 {
				return nil, errLostReply
			}
			response, err := send()
			if err == nil && r.Header.Get("Accept") == "text/event-stream" {
				response.Body = cutAfter(response.Body, 40+calls*97%1500)
			}
			return response, err
		})
		var reading sync.WaitGroup
		reading.Go(func() { follow(reader, 0) })
		at := leadership.Index(0)
		for n := range leaders {
			l := lead(t, server.Client(named(leadership.CandidateID(fmt.Sprintf("leader-%d", n)))))
			j, err := l.Journal(t.Context())
			if err != nil || j.Index() != at {
				t.Fatalf("leader %d begins at %d, %v", n, j.Index(), err)
			}
			for range each {
				if at, err = j.Append(t.Context(), client.Entry{Data: int(at) + 1}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(300 * time.Millisecond)
			}
			require.NoError(t, j.Snapshot(t.Context(), at-5, int(at-5)))
			l.Resign(t.Context())
		}
		if reading.Wait(); calls < 5 {
			t.Errorf("the reader has made %d calls", calls)
		}
		late := server.Client(client.Candidate{})
		if n := follow(late, 3); n != 1 {
			t.Errorf("a late reader gets %d snapshots, want the last", n)
		}
		for _, err := range late.Follow(t.Context(), "reports", 500) {
			assert.ErrorIs(t, err, leadership.IndexMismatch, "a reader of another journal")
			break
		}
	})
}

// cutAfter breaks a body off after so many bytes.
func cutAfter(body io.ReadCloser, n int) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(io.LimitReader(body, int64(n)), iotest.ErrReader(io.ErrUnexpectedEOF)), body}
}

func TestAMemberThatFollowsSaysHowFarItIs(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		l := lead(t, server.Client(named("ann")))
		j, err := l.Journal(t.Context())
		require.NoError(t, err)
		var applied atomic.Int64
		reader := over(t, server, named("cy"), func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			if q := r.URL.Query(); q.Get("member") == "cy" && q.Get("applied") != "" {
				n, _ := strconv.ParseInt(q.Get("applied"), 10, 64)
				if n < applied.Load() {
					t.Errorf("it says %d after %d", n, applied.Load())
				}
				applied.Store(n)
			}
			return send()
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			var last error
			for _, err := range reader.FollowAs(ctx, "reports", 0, "cy") {
				last = err
				time.Sleep(10 * time.Second) // it works on it
			}
			ended <- last
		}()
		for i := range 3 {
			_, err := j.Append(t.Context(), client.Entry{Data: i})
			require.NoError(t, err)
		}
		time.Sleep(15 * time.Second)
		assert.EqualValues(t, 1, applied.Load(), "while it works on the second entry it says that it has applied")
		time.Sleep(20 * time.Second)
		assert.EqualValues(t, 3, applied.Load(), "when it has worked on all it says that it has applied")
		stop()
		assert.ErrorIs(t, <-ended, context.Canceled, "the loop")
		l.Resign(t.Context())
	})
}

func journalEntry(i int) string {
	return fmt.Sprintf("id: %d\nevent: entry\ndata: {\"index\":%d,\"fencingToken\":1,\"at\":\"2027-03-01T12:00:00Z\",\"data\":%d}\n\n", i, i, i)
}

func TestAFollowerPassesOverWhatItHasAndAsksAgainForWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &scriptedServer{acts: []http.HandlerFunc{
			replying(http.StatusOK, "application/json", `{"election":"reports","index":1,"snapshotIndex":0,"entries":[{"index":1,"fencingToken":1,"at":"2027-03-01T12:00:00Z","data":1}]}`),
			breaking(journalEntry(1), journalEntry(2)),
			problem(http.StatusServiceUnavailable, "STORE_UNAVAILABLE"),
			streaming(journalEntry(2), journalEntry(3), journalEntry(5)),
			streaming(journalEntry(4), end("limit", "4")),
			streaming(journalEntry(5), journalEntry(7)), // 6 is left out twice
			streaming(journalEntry(8)),
		}}
		var got []leadership.Index
		var last error
		for item, err := range server.client(t).Follow(t.Context(), "reports", 0) {
			if last = err; err == nil {
				got = append(got, item.Index())
			}
		}
		if fmt.Sprint(got) != "[1 2 3 4 5]" || !errors.Is(last, leadership.StoreUnavailable) {
			t.Errorf("the loop has %v and ends with %v", got, last)
		}
	})
}

package test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/client"
	"regent/test/machine"
)

// A follower of a journal whose stream is cut after every so many bytes, and whose server is killed
// now and then, sees every index once, in order, with what was appended there; and so it is in the
// end. Meanwhile leaders append, each append again until it is answered.
func TestAJournalIsFollowedThroughEveryCut(t *testing.T) {
	machine.Share(t)
	in := inFile(t)
	var mu sync.Mutex
	server := in.serve(t)
	now := func() (string, *client.Client) {
		mu.Lock()
		defer mu.Unlock()
		return server.URL, server.client
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	appended := make(chan leadership.Index, 1)
	go func() {
		var last leadership.Index
		for n := 0; ctx.Err() == nil; n++ {
			last = appendAWhile(ctx, t, func() *client.Client { _, c := now(); return c }, fmt.Sprint("agent-", n), last)
		}
		appended <- last
	}()

	f := journalFollower{t: t, random: rand.New(rand.NewPCG(17, 2))}
	cuts := machine.Size(100, 1000)
	for n := range cuts {
		if n%25 == 24 {
			mu.Lock()
			server.kill()
			server = in.serve(t)
			mu.Unlock()
		}
		url, _ := now()
		f.follow(ctx, url, f.random.IntN(4000))
		if t.Failed() {
			t.Fatalf("after %d cuts", n+1)
		}
	}
	stop()
	last := <-appended
	for f.last < last && !t.Failed() {
		url, _ := now()
		f.follow(t.Context(), url, 1<<20)
	}
	t.Logf("%d cuts; the journal has %d entries", cuts, last)
	if f.last != last || last < leadership.Index(cuts) {
		t.Errorf("the follower has seen %d entries, and there are %d", f.last, last)
	}
}

// appendAWhile leads for some appends, of entries that tell their index. It returns the last.
func appendAWhile(ctx context.Context, t *testing.T, server func() *client.Client, who string, last leadership.Index) leadership.Index {
	key := leadership.NewKey()
	again := func(do func(*client.Client) error) bool {
		for ctx.Err() == nil {
			err := do(server())
			if err == nil {
				return true
			}
			if errors.Is(err, leadership.IndexMismatch) || errors.Is(err, leadership.TokenStale) || errors.Is(err, leadership.LeaseLost) || errors.Is(err, leadership.InvalidArgument) {
				t.Errorf("%s: %v", who, err)
				return false
			}
			<-time.After(10 * time.Millisecond)
		}
		return false
	}
	lease := leadership.LeaseRequest{Election: "logged", CandidateID: leadership.CandidateID(who), Key: key}
	if !again(func(c *client.Client) error {
		g, err := c.Acquire(ctx, leadership.AcquireRequest{Election: lease.Election, CandidateID: lease.CandidateID, Key: &key, LeaseDuration: time.Hour})
		lease.Token = g.Token
		return err
	}) {
		return last
	}
	again(func(c *client.Client) error {
		h, err := c.OpenJournal(ctx, lease)
		if err == nil && h.Index < last {
			t.Errorf("%s opens the journal at index %d, and %d was acknowledged", who, h.Index, last)
		}
		last = max(last, h.Index)
		return err
	})
	for range 40 {
		r := leadership.AppendRequest{LeaseRequest: lease, After: last}
		for i := range 1 + last%3 {
			r.Entries = append(r.Entries, leadership.Entry{Data: json.RawMessage(strconv.Itoa(int(last + 1 + i)))})
		}
		ctx := context.WithoutCancel(ctx) // or it would not be known whether the last was done
		if !again(func(c *client.Client) error {
			h, err := c.AppendJournal(ctx, r)
			if err == nil && h.Index != last+leadership.Index(len(r.Entries)) {
				t.Errorf("%s appended %d entries after %d, and the index is %d", who, len(r.Entries), last, h.Index)
			}
			return err
		}) {
			return last
		}
		last += leadership.Index(len(r.Entries))
	}
	again(func(c *client.Client) error { _, err := c.Release(ctx, lease); return err })
	return last
}

// journalFollower reads a journal's stream.
type journalFollower struct {
	t      *testing.T
	random *rand.Rand
	last   leadership.Index // that it has seen
}

// follow reads so many bytes of a stream, and then cuts it. Half a message counts for nothing.
func (f *journalFollower) follow(ctx context.Context, url string, most int) {
	ctx, cut := context.WithTimeout(ctx, time.Second)
	defer cut()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/v1/elections/logged/journal", nil)
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Last-Event-ID", strconv.Itoa(int(f.last)))
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		return
	}
	defer reply.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(reply.Body, int64(most))) // what came before the cut
	if reply.StatusCode != http.StatusOK && reply.StatusCode != http.StatusNotFound && reply.StatusCode != http.StatusServiceUnavailable {
		f.t.Errorf("status %d: %s", reply.StatusCode, text)
	}
	whole := text[:max(bytes.LastIndex(text, []byte("\n\n")), 0)]
	for message := range strings.SplitSeq(string(whole), "\n\n") {
		var entry struct {
			Index leadership.Index
			Data  leadership.Index
		}
		if !strings.Contains(message, "event: entry") {
			continue
		}
		_, data, _ := strings.Cut(message, "data: ")
		if err := json.Unmarshal([]byte(strings.SplitN(data, "\n", 2)[0]), &entry); err != nil {
			f.t.Errorf("%q: %v", message, err)
			return
		}
		if entry.Index != f.last+1 || entry.Data != entry.Index {
			f.t.Errorf("after index %d comes %d, and it is what was appended as %d", f.last, entry.Index, entry.Data)
			return
		}
		f.last = entry.Index
	}
}

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"regent/leadership"
	"regent/leadership/client"
	"regent/test/machine"
)

// lead has ann lead an election.
func lead(t *testing.T, c *client.Client, e leadership.Election, lease time.Duration) (leadership.Grant, leadership.LeaseRequest) {
	t.Helper()
	key := leadership.NewKey()
	grant, err := c.Acquire(t.Context(), leadership.AcquireRequest{Election: e, CandidateID: "ann", Key: &key, LeaseDuration: lease})
	if err != nil {
		t.Fatal(err)
	}
	return grant, leadership.LeaseRequest{Election: e, CandidateID: "ann", Key: key, Token: grant.Token}
}

func read(t *testing.T, c *client.Client, e leadership.Election) leadership.Lease {
	t.Helper()
	reading, err := c.Read(t.Context(), leadership.ReadRequest{Election: e, Strong: true})
	if err != nil {
		t.Fatal(err)
	}
	return reading.Lease
}

// The first run is stopped and the second killed; the third goes on from both.
func TestTokensGoOnFromRunToRun(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	p := startAlone(t, "-state", dir)
	url, _ := p.ready(t)
	c := newClient(t, url)
	_, lease := lead(t, c, "released", time.Minute)
	if _, err := c.Do(t.Context(), leadership.Release{LeaseRequest: lease}); err != nil {
		t.Fatal(err)
	}
	lead(t, c, "held", time.Hour)
	p.end(t, os.Interrupt)

	p = startAlone(t, "-state", dir)
	p.await(t, "1 elections had a leader, and can be led again in 1h0m")
	url, _ = p.ready(t)
	c = newClient(t, url)
	if is := read(t, c, "held"); is.State == leadership.Held || is.LockedFor < 59*time.Minute || is.Token < 1 {
		t.Errorf("an election whose leader may still lead: %+v", is)
	}
	grant, _ := lead(t, c, "released", time.Minute)
	if grant.Token != 2 {
		t.Errorf("after a clean end the next token is %d, want 2", grant.Token)
	}
	lead(t, c, "fresh", 2*time.Minute)
	machine.Eventually(t, "the lease is noted, after its event", func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "seen.jsonl"))
		return err == nil && strings.Contains(string(text), `"election":"fresh","revision":1,"lease":120`) && strings.Contains(string(text), `"election":"released","revision":3`)
	})
	pid := p.pid(t, 1)
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.Wait()
	wantGone(t, pid)

	p = startAlone(t, "-state", dir)
	p.await(t, "data of a run that was killed: 3 elections are raised to fencing token 1000")
	if !strings.HasSuffix(p.said, "first used in the moments before the kill may begin anew, at token 1\n") {
		t.Errorf("after a kill it does not say which token may be granted twice:\n%s", p.said)
	}
	url, _ = p.ready(t)
	c = newClient(t, url)
	for e, locked := range map[leadership.Election]time.Duration{"held": 50 * time.Minute, "released": 5 * time.Second, "fresh": time.Minute} {
		if is := read(t, c, e); is.State == leadership.Held || is.Token < margin || is.LockedFor < locked {
			t.Errorf("%s after a kill: %+v, want a token above %d, and no leader for %v", e, is, margin, locked)
		}
	}
	p.end(t, syscall.SIGTERM)
}

func TestAFolderIsForOneRunAndOneProject(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	s, err := openState(dir, "p")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openState(dir, "p"); err == nil || !strings.Contains(err.Error(), "another make dev uses this folder") {
		t.Errorf("a second one: %v", err)
	}
	if err := s.writeSaved(); err != nil {
		t.Fatal(err)
	}
	s.close()
	if _, err := openState(dir, "q"); err == nil || !strings.Contains(err.Error(), "give that, or another folder") {
		t.Errorf("another project: %v", err)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "export-1"), 0o700), os.Remove(filepath.Join(dir, "saved.json"))); err != nil {
		t.Fatal(err)
	}
	if _, err := openState(dir, "p"); err == nil || !strings.Contains(err.Error(), "no saved.json") {
		t.Errorf("an export of an unknown run: %v", err)
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openState(other, "p"); err == nil || !strings.Contains(err.Error(), "other files") {
		t.Errorf("a folder of something else: %v", err)
	}
}

func TestWhatWasSeenOutlivesAKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := openState(dir, "p")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []sighting{{"a", 1, 0}, {"a", 1, time.Hour}, {"a", 3, time.Minute}, {"b", 2, 0}, {"b", 1, 0}} {
		if err := s.see(one); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.log.WriteString(`{"election":"c","rev`); err != nil { // it is killed here
		t.Fatal(err)
	}
	s.close()
	if s, err = openState(dir, "p"); err != nil {
		t.Fatal(err)
	}
	defer s.close()
	want := map[leadership.Election]sighting{"a": {"a", 3, time.Hour}, "b": {"b", 2, 0}}
	if diff := cmp.Diff(want, s.seen); diff != "" || s.saved.Highest != 3 {
		t.Errorf("highest %d; seen (-want +got)\n%s", s.saved.Highest, diff)
	}
	if err := s.see(sighting{"d", 9, 0}); err != nil {
		t.Fatal(err)
	}
	again, err := os.ReadFile(filepath.Join(dir, "seen.jsonl"))
	if err != nil || !strings.Contains(string(again), "\n"+`{"election":"d","revision":9`) {
		t.Errorf("after a line that was cut, the next is part of it: %q, %v", again, err)
	}
}

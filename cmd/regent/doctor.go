package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"regent/cmd/regent/internal/cloud"
	"regent/leadership"
	"regent/leadership/instance/pubsub"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/store"
)

// doctorElection is the election that the doctor uses. The name is reserved for Regent.
const doctorElection leadership.Election = "regent.doctor"

const (
	doctorRounds  = 5
	doctorTimeout = 30 * time.Second // for each check
	// doctorLease outlasts a store that is slow for a moment, and delays the next doctor little if
	// this one is killed.
	doctorLease = 10 * time.Second
)

func (c *cli) doctorCommand() *cobra.Command {
	s := doctorSettings{events: noEvents, members: noMembers, auth: authPlatform}
	cmd := &cobra.Command{
		Use:   "doctor --store STORE [--events TOPIC] [--events-endpoint HOST:PORT] [--members TOPIC] [--service SERVICE,…] [--access FILE]",
		Short: "Check that a store, a topic and a Cloud Run service work",
		Long: `Check that this machine and its credentials can do with a store and a topic what serve does: read, grant, renew, release,
read the history, keep a checkpoint and a journal, publish, subscribe and receive. It prints how long each step takes, and how far the clocks of the store's
servers differ. It uses the election regent.doctor, whose token rises with each run, and a subscription of its own to each
topic, which it deletes. To the topic of members it publishes nothing.

With --events and without --members it reads all elections, and warns if one has a quorum: if there are several instances,
each then counts only its own members.

With --peer it calls each of these services, with the identity that serve has there if doctor runs as the same principal.
The peer must let that principal read the election regent.doctor, or all elections.

A local store's folder is read and verified first, and not used if it is damaged. That is possible while no server serves
it; a server verifies it when it starts. To look at it in the meantime, stop the server, copy the folder, and start it again.

On Google Cloud it also checks what no emulator has: the indexes and the TTL policy of a Firestore database, the regions
that a topic is stored in, the rights on the topic of members and what keeps its messages, and whether callers without
credentials may call a Cloud Run service. That needs rights to read them (roles/datastore.viewer, roles/pubsub.viewer,
roles/run.viewer), so also run it as a person who has those; a check without its right is "not checked".

Where a variable such as FIRESTORE_EMULATOR_HOST names an emulator, as after 'make dev', it says what differs from the
real service, in rows with the result "differs", which are no failures. A --service at http://127.0.0.1 is then asked
whether it is ready.

A check that fails names the entry of cmd/regent/TROUBLESHOOTING.md to read, and the exit code is 1.`,
		Example: `  regent doctor --store firestore:PROJECT/regent --events projects/PROJECT/topics/regent
  regent doctor --store firestore:PROJECT/regent --members projects/PROJECT/topics/regent-members
  regent doctor --store file:/var/lib/regent/leases
  regent doctor --store firestore:PROJECT/regent --service projects/PROJECT/locations/europe-west1/services/regent`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.validate(); err != nil {
				return err
			}
			c.tellEmulator(s.store)
			return c.examine(cmd.Context(), s, &cloud.Client{})
		},
	}
	cmd.Flags().Var(&value[string]{&s.store, "", "STORE", parseText}, "store", "the store, as for serve")
	cmd.Flags().Var(&value[string]{&s.events, noEvents, "TOPIC", parseText}, "events", "the topic, as for serve")
	cmd.Flags().Var(&value[string]{&s.endpoint, "", "HOST:PORT", parseText}, "events-endpoint", "what to publish through, as for serve")
	cmd.Flags().Var(&value[string]{&s.members, noMembers, "TOPIC", parseText}, "members", "the topic of members, as for serve")
	s.peers.addTo(c, cmd)
	cmd.Flags().Var(&value[[]string]{&s.services, "", "SERVICE,…", parseTexts}, "service", "Cloud Run services, as projects/P/locations/L/services/S, or addresses, as https://HOST")
	cmd.Flags().Var(&value[string]{&s.auth, authPlatform, "HOW", parseText}, "auth", "how the services authenticate callers, as for serve")
	cmd.Flags().Var(&value[string]{&s.access, "", "FILE", parseText}, "access", "an access file to check before a service uses it")
	c.complete(cmd, "auth", authPlatform, authOIDC)
	c.require(cmd, "store", "REGENT_STORE")
	c.from(cmd, "events", "events-endpoint", "members", "auth")
	return cmd
}

type doctorReport struct {
	id     string // request id of all its calls
	rows   [][]string
	failed int
	news   leadership.Event // the last change it made
}

// examine makes all checks that are possible and prints the results.
func (c *cli) examine(ctx context.Context, s doctorSettings, project *cloud.Client) error {
	x := &doctorReport{id: "doctor-" + rand.Text(), rows: [][]string{{"CHECK", "RESULT", "TOOK", ""}}}
	ctx = leadership.WithRequestID(ctx, x.id)
	x.examineStore(ctx, s, readDetail(s.store, c.env))
	if s.events != noEvents {
		x.examineTopic(ctx, pubsub.Config{Topic: s.events, PublishEndpoint: s.endpoint})
	}
	if s.members != noMembers {
		x.examineMembers(ctx, s.members)
	}
	x.examinePeers(ctx, s.peers)
	if s.access != "" {
		x.check(ctx, "access file", 1, func(context.Context) (string, error) {
			_, err := accessSettings{auth: s.auth, file: s.access}.openFile(slog.New(slog.DiscardHandler))
			return s.access, err
		})
	}
	x.examineProject(ctx, s, project, c.env)
	x.addEntries()
	if err := c.printTable(x.rows); err != nil {
		return err
	}
	if x.failed > 0 {
		return fmt.Errorf("%d of %d checks failed", x.failed, len(x.rows)-1)
	}
	return nil
}

// check runs one check the given number of times and records the median and the longest duration.
// It reports whether all runs succeeded.
func (x *doctorReport) check(ctx context.Context, name string, times int, do func(context.Context) (detail string, err error)) bool {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	var took []time.Duration
	var detail string
	for range times {
		began := time.Now()
		said, err := do(ctx)
		if err != nil {
			x.failed++
			x.rows = append(x.rows, []string{name, "FAILED", "", remedy(err)})
			return false
		}
		took, detail = append(took, time.Since(began)), said
	}
	slices.Sort(took)
	text := short(took[len(took)/2])
	if times > 1 {
		text += ", " + short(took[len(took)-1]) + " at most"
	}
	x.rows = append(x.rows, []string{name, "ok", text, detail})
	return true
}

func short(d time.Duration) string { return d.Round(10 * time.Microsecond).String() }

// remedy returns the text of err, followed by what to do about it if the cause is known. Google's
// services put the name of their code into the text.
func remedy(err error) string {
	text := err.Error()
	for _, r := range []struct{ code, advice string }{
		{"PermissionDenied", "give this principal the roles that Terraform gives the service account"},
		{"Unauthenticated", "there are no credentials: run this with a service account, or run gcloud auth application-default login"},
		{"NotFound", "create it, with Terraform or by hand"},
		{"FailedPrecondition", "an index may be missing or still building"},
	} {
		// Spanner's form
		if strings.Contains(text, "code = "+r.code) || strings.Contains(text, `code = "`+r.code) {
			return text + "; " + r.advice
		}
	}
	return text
}

// examineStore uses a store as serve does. readShows is the detail for a successful read.
func (x *doctorReport) examineStore(ctx context.Context, settings doctorSettings, readShows string) {
	spec := settings.store
	if strings.HasPrefix(spec, "file:") {
		sound := x.check(ctx, "verify the folder", 1, func(context.Context) (string, error) { return store.Check(spec) })
		if !sound {
			return
		}
	}
	var s store.Store
	opened := x.check(ctx, "open the store", 1, func(ctx context.Context) (detail string, err error) {
		if s, err = store.OpenExisting(ctx, spec, store.Config{}); err == nil {
			err = store.RefuseMoved(ctx, s)
		}
		return spec, err
	})
	if s != nil {
		defer s.Close()
	}
	if !opened {
		return
	}
	clock := &clockWatch{}
	x.check(ctx, "read", doctorRounds, func(ctx context.Context) (string, error) { return readShows, clock.get(ctx, s) })
	x.check(ctx, "list", doctorRounds, func(ctx context.Context) (string, error) {
		_, err := s.List(ctx, "", "", 1)
		return "", err
	})
	x.examineLease(ctx, s, clock)
	x.check(ctx, "history by time", 1, func(ctx context.Context) (string, error) {
		_, err := s.Since(ctx, clock.last.Add(-time.Minute), leadership.MaxRecent)
		if errors.Is(err, leadership.HistoryCompacted) {
			err = nil // more events than asked for
		}
		return "", err
	})
	x.check(ctx, "held and to be retired", 1, func(ctx context.Context) (string, error) {
		_, held := s.Held(ctx, "", 1)
		_, due := s.Retirable(ctx, clock.last, 1)
		return "", errors.Join(held, due)
	})
	x.check(ctx, "outbox", 1, func(ctx context.Context) (string, error) {
		_, err := s.Unannounced(ctx, "", 1)
		return "", err
	})
	x.check(ctx, "clock", doctorRounds, func(ctx context.Context) (string, error) {
		err := clock.get(ctx, s)
		return clock.String(), errors.Join(err, clock.verdict())
	})
	if settings.countsApart() {
		x.examineQuorums(ctx, s)
	}
}

func (x *doctorReport) examineLease(ctx context.Context, s store.Store, clock *clockWatch) {
	floor, unread := store.Floor(ctx, s)
	svc := service.New(s).WithFloor(floor)
	key := leadership.NewKey()
	var grant leadership.Grant
	acquire := func(ctx context.Context) (detail string, err error) {
		if unread != nil {
			return "", unread
		}
		grant, err = svc.Acquire(ctx, leadership.AcquireRequest{
			Election: doctorElection, CandidateID: "doctor", Key: &key, LeaseDuration: doctorLease,
		})
		clock.see(grant.ReadAt)
		if errors.Is(err, leadership.LeaseHeld) {
			err = fmt.Errorf("%w; another doctor is at work, or the store was raised or moved and its locks have not ended: run doctor again then", err)
		}
		return fmt.Sprintf("fencing token %d of election %s", grant.Token, doctorElection), err
	}
	lease := func() leadership.LeaseRequest {
		return leadership.LeaseRequest{Election: doctorElection, CandidateID: "doctor", Key: key, Token: grant.Token}
	}
	if !x.check(ctx, "grant", 1, acquire) {
		return
	}
	x.check(ctx, "renew", doctorRounds, func(ctx context.Context) (string, error) {
		l, err := svc.Renew(ctx, lease())
		clock.see(l.ReadAt)
		return "", err
	})
	x.examineLedger(ctx, service.NewLedger(svc, s), s, lease())
	x.check(ctx, "release", 1, func(ctx context.Context) (string, error) {
		l, err := svc.Do(ctx, leadership.Release{LeaseRequest: lease()})
		clock.see(l.ReadAt)
		return "", err
	})
	x.check(ctx, "history", 1, func(ctx context.Context) (string, error) {
		events, err := svc.Events(ctx, leadership.EventsRequest{Election: doctorElection, After: grant.Revision - 1})
		if len(events) > 0 {
			x.news = events[len(events)-1]
		}
		return "", err
	})
}

// examineLedger writes a checkpoint, and a journal entry that a snapshot then replaces.
func (x *doctorReport) examineLedger(ctx context.Context, ledger *service.Ledger, j service.Journal, lease leadership.LeaseRequest) {
	x.check(ctx, "checkpoint", 1, func(ctx context.Context) (string, error) {
		_, err := ledger.PutCheckpoint(ctx, leadership.CheckpointRequest{LeaseRequest: lease, Sequence: 1, Task: "doctor", Data: []byte(`{}`)})
		if err == nil {
			_, err = ledger.Checkpoint(ctx, lease.Election)
		}
		return "", err
	})
	var head leadership.JournalHead
	kept := x.check(ctx, "journal", 1, func(ctx context.Context) (_ string, err error) {
		if head, err = ledger.OpenJournal(ctx, lease); err != nil {
			return "", err
		}
		entry := leadership.Entry{Type: "doctor", Data: []byte(`{}`)}
		if head, err = ledger.AppendJournal(ctx, leadership.AppendRequest{LeaseRequest: lease, After: head.Index, Entries: []leadership.Entry{entry}}); err != nil {
			return "", err
		}
		if _, err = ledger.ReadJournal(ctx, leadership.JournalRequest{Election: lease.Election, After: head.Index - 1}); err != nil {
			return "", err
		}
		_, err = ledger.SnapshotJournal(ctx, leadership.SnapshotRequest{LeaseRequest: lease, UpTo: head.Index, Data: []byte(`{}`)})
		return fmt.Sprintf("at index %d", head.Index), err
	})
	if !kept {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	if err := j.Trim(ctx, rule.LogID{Election: lease.Election, Kind: rule.LogJournal}, head.Index); err != nil {
		x.add(cloud.Finding{Check: "trim the journal", Verdict: cloud.Warning, Text: "entries that a snapshot stands for are not deleted, and cost storage; nothing else depends on it: " + remedy(err)})
	}
}

// examinePeers asks each peer for the doctor's own election, which it need not have.
func (x *doctorReport) examinePeers(ctx context.Context, s peerSettings) {
	all, err := s.peers()
	if err != nil || all == nil { // they were validated
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.urls)) {
		x.check(ctx, "peer "+name, 1, func(ctx context.Context) (string, error) {
			_, err := all.Check(ctx, name, leadership.TokenCheck{Election: doctorElection, Token: 1})
			if errors.Is(err, leadership.TokenStale) || errors.Is(err, leadership.NotFound) {
				err = nil // an answer
			}
			return s.urls[name], err
		})
	}
}

// clockWatch compares the store's times in the order in which it reported them.
type clockWatch struct {
	last  time.Time
	back  time.Duration // largest step backwards
	guard time.Duration
	ahead time.Duration // of this machine's clock; for information only
	seen  int
}

func (w *clockWatch) get(ctx context.Context, s service.Store) error {
	began := time.Now()
	snap, err := s.Get(ctx, doctorElection)
	if err != nil {
		return err
	}
	w.guard = snap.Guard
	w.ahead = snap.Now.Sub(began.Add(time.Since(began) / 2))
	w.see(snap.Now)
	return nil
}

func (w *clockWatch) see(now time.Time) {
	if now.IsZero() {
		return
	}
	if w.seen > 0 {
		w.back = max(w.back, w.last.Sub(now))
	}
	w.last = now
	w.seen++
}

// verdict returns an error if the store's clocks differ by more than the store's guard time.
func (w *clockWatch) verdict() error {
	if w.back > w.guard {
		return fmt.Errorf("the store's clock went back by %v between two answers, and it tolerates %v: do not use this store", w.back, w.guard)
	}
	return nil
}

func (w *clockWatch) String() string {
	return fmt.Sprintf("%d readings went back by %v at most, %v is tolerated; %v ahead of this machine's clock, which is not used",
		w.seen, max(w.back, 0), w.guard, w.ahead.Round(time.Millisecond))
}

// examineTopic publishes the last change once more (duplicates are allowed at any time) and waits
// until it arrives.
func (x *doctorReport) examineTopic(ctx context.Context, c pubsub.Config) {
	c.Instance = "doctor"
	var bus *pubsub.Bus
	opened := x.check(ctx, "open the topic", 1, func(ctx context.Context) (detail string, err error) {
		bus, err = pubsub.Open(ctx, c)
		return c.Topic, err
	})
	if !opened {
		return
	}
	defer bus.Close()
	heard := make(chan leadership.Event, doctorRounds)
	live, ended, stop := hearing(ctx, func(ctx context.Context, live func(bool)) error {
		return bus.Run(ctx, func(e leadership.Event) {
			if e.RequestID == x.id {
				select {
				case heard <- e:
				default:
				}
			}
		}, live)
	})
	ready := x.check(ctx, "subscribe", 1, func(ctx context.Context) (string, error) { return "", receive(ctx, live, ended) })
	published := x.news.Revision > 0 && x.check(ctx, "publish", 1, func(ctx context.Context) (string, error) {
		_, err := bus.Publish(ctx, []leadership.Event{x.news})
		return c.PublishEndpoint, err
	})
	if ready && published {
		x.check(ctx, "hear", 1, func(ctx context.Context) (string, error) { return "", receive(ctx, heard, ended) })
	}
	stop()
	if ready {
		x.check(ctx, "delete the subscription", 1, func(context.Context) (string, error) { return "", <-ended })
	}
}

// hearing calls run, which listens to a topic, until stop is called. live is closed once run
// listens, and ended receives its result.
func hearing(ctx context.Context, run func(ctx context.Context, live func(bool)) error) (live <-chan struct{}, ended <-chan error, stop func()) {
	ctx, stop = context.WithCancel(ctx)
	hears, over := make(chan struct{}), make(chan error, 1)
	first := sync.OnceFunc(func() { close(hears) })
	go func() {
		over <- run(ctx, func(is bool) {
			if is {
				first()
			}
		})
	}()
	return hears, over, stop
}

// examineMembers subscribes to a topic of members. It publishes nothing, because instances would
// receive it.
func (x *doctorReport) examineMembers(ctx context.Context, topic string) {
	var bus *pubsub.Messages
	opened := x.check(ctx, "open the topic of members", 1, func(ctx context.Context) (detail string, err error) {
		bus, err = pubsub.OpenMessages(ctx, pubsub.Config{Topic: topic, Instance: "doctor"})
		return topic, err
	})
	if !opened {
		return
	}
	defer bus.Close()
	live, ended, stop := hearing(ctx, func(ctx context.Context, live func(bool)) error { return bus.Run(ctx, func([]byte) {}, live) })
	ready := x.check(ctx, "subscribe to members", 1, func(ctx context.Context) (string, error) { return "", receive(ctx, live, ended) })
	stop()
	if ready {
		x.check(ctx, "delete that subscription", 1, func(context.Context) (string, error) { return "", <-ended })
	}
}

// examineQuorums looks for elections with a quorum, whose members may be at several instances that
// do not tell each other.
func (x *doctorReport) examineQuorums(ctx context.Context, s service.Store) {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	f := cloud.Finding{Check: "quorums", Verdict: cloud.OK, Text: "no election has one, so that no instance has to know the members at the others"}
	switch found, first, err := quorums(ctx, s); {
	case err != nil:
		f.Verdict, f.Text = cloud.Unchecked, remedy(err)
	case found > 0:
		f.Verdict, f.Text = cloud.Warning, fmt.Sprintf("%d elections, such as %q, have a quorum, and instances do not tell each other which members are present: give serve --members TOPIC, unless all members call one instance", found, first)
	}
	x.add(f)
}

// quorums counts the elections with a quorum, and returns the first of them.
func quorums(ctx context.Context, s service.Store) (found int, first leadership.Election, err error) {
	for next := leadership.Election(""); ; {
		page, err := s.List(ctx, "", next, leadership.MaxPageSize)
		if err != nil {
			return 0, "", err
		}
		for _, snap := range page.Snapshots {
			if !snap.Record.Deleted && snap.Record.Policy.Ballot.Quorum.Size() > 0 {
				found, first = found+1, cmp.Or(first, snap.Record.Election)
			}
		}
		if next = page.Next; next == "" {
			return found, first, nil
		}
	}
}

func receive[T any](ctx context.Context, from <-chan T, ended <-chan error) error {
	select {
	case <-from:
		return nil
	case err := <-ended:
		return err
	case <-ctx.Done():
		return fmt.Errorf("nothing arrived within %v", doctorTimeout)
	}
}

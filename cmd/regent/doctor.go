package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"regent/leadership"
	"regent/leadership/instance/pubsub"
	"regent/store"
)

// patient is the election that the doctor uses. It is one of Regent's own, and nobody else leads it.
const patient leadership.Election = "regent.doctor"

const (
	doctorRounds  = 5
	doctorTimeout = 30 * time.Second // of one check
)

func (c *cli) doctorCommand() *cobra.Command {
	var spec string
	events := noEvents
	cmd := &cobra.Command{
		Use:   "doctor --store STORE [--events TOPIC]",
		Short: "Check that a store and a topic can be used",
		Long: `Check that this machine, with the credentials that it has, may do with a store and a topic what serve does: read, grant, renew,
release, look into the history, publish, subscribe and hear. It says how long each takes, and how far the clocks of the store's
servers are apart. It uses the election regent.doctor, whose token rises with each run, and a subscription of its own, which it
deletes. If a check fails the exit code is 1.`,
		Example: "  regent doctor --store firestore:PROJECT --events projects/PROJECT/topics/regent",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.tellEmulator(spec)
			return c.examine(cmd.Context(), spec, events)
		},
	}
	cmd.Flags().Var(&value[string]{&spec, "", "STORE", parseText}, "store", "the store, as serve has it")
	cmd.Flags().Var(&value[string]{&events, noEvents, "TOPIC", parseText}, "events", "the topic, as serve has it")
	c.require(cmd, "store", "REGENT_STORE")
	c.from(cmd, "events", "REGENT_EVENTS")
	return cmd
}

// examination is what the doctor has found.
type examination struct {
	id     string // of the requests that it makes
	rows   [][]string
	failed int
	news   leadership.Event // the last change that it made
}

// examine makes all checks that can be made, and prints them.
func (c *cli) examine(ctx context.Context, spec, events string) error {
	x := &examination{id: "doctor-" + rand.Text(), rows: [][]string{{"CHECK", "RESULT", "TOOK", ""}}}
	ctx = leadership.WithRequestID(ctx, x.id)
	x.examineStore(ctx, spec)
	if events != noEvents {
		x.examineTopic(ctx, events)
	}
	if err := c.printTable(x.rows); err != nil {
		return err
	}
	if x.failed > 0 {
		return fmt.Errorf("%d of %d checks failed", x.failed, len(x.rows)-1)
	}
	return nil
}

// check makes a check some times, and notes how long it took: the median, and the longest.
func (x *examination) check(ctx context.Context, name string, times int, do func(context.Context) (detail string, err error)) bool {
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

// remedy is an error and what to do about it, as far as that is known. Google's services name their codes in the text.
func remedy(err error) string {
	text := err.Error()
	for _, r := range []struct{ code, advice string }{
		{"PermissionDenied", "give this principal the roles that terraform gives the service's"},
		{"Unauthenticated", "there are no credentials: run where there is a service account, or gcloud auth application-default login"},
		{"NotFound", "create it, by terraform or by hand"},
		{"FailedPrecondition", "an index may be missing, or still be built"},
	} {
		if strings.Contains(text, "code = "+r.code) || strings.Contains(text, `code = "`+r.code) { // as Spanner has it
			return text + "; " + r.advice
		}
	}
	return text
}

// examineStore uses a store as serve does.
func (x *examination) examineStore(ctx context.Context, spec string) {
	var s leadership.Store
	opened := x.check(ctx, "open the store", 1, func(ctx context.Context) (detail string, err error) {
		s, err = store.OpenExisting(ctx, spec, store.Config{})
		return spec, err
	})
	if !opened {
		return
	}
	defer s.Close()
	clock := &clockWatch{}
	x.check(ctx, "read", doctorRounds, func(ctx context.Context) (string, error) { return "", clock.get(ctx, s) })
	x.check(ctx, "list", doctorRounds, func(ctx context.Context) (string, error) {
		_, err := s.List(ctx, "", "", 1)
		return "", err
	})
	x.examineLease(ctx, s, clock)
	x.check(ctx, "history by time", 1, func(ctx context.Context) (string, error) {
		_, err := s.Since(ctx, clock.last.Add(-time.Minute), leadership.MaxRecent)
		if errors.Is(err, leadership.HistoryCompacted) {
			err = nil // there is more of it than is asked for
		}
		return "", err
	})
	x.check(ctx, "outbox", 1, func(ctx context.Context) (string, error) {
		_, err := s.Unannounced(ctx, "", 1)
		return "", err
	})
	x.check(ctx, "clock", doctorRounds, func(ctx context.Context) (string, error) {
		err := clock.get(ctx, s)
		return clock.String(), errors.Join(err, clock.verdict())
	})
}

// examineLease lives a short life of a lease, some times.
func (x *examination) examineLease(ctx context.Context, s leadership.Store, clock *clockWatch) {
	service := leadership.New(s)
	key := leadership.NewKey()
	var grant leadership.Grant
	acquire := func(ctx context.Context) (detail string, err error) {
		grant, err = service.Acquire(ctx, leadership.AcquireRequest{
			Election: patient, CandidateID: "doctor", Key: &key, LeaseDuration: leadership.MinLeaseDuration,
		})
		clock.see(grant.ReadAt)
		return fmt.Sprintf("fencing token %d of election %s", grant.Token, patient), err
	}
	lease := func() leadership.LeaseRequest {
		return leadership.LeaseRequest{Election: patient, CandidateID: "doctor", Key: key, Token: grant.Token}
	}
	if !x.check(ctx, "grant", 1, acquire) {
		return
	}
	x.check(ctx, "renew", doctorRounds, func(ctx context.Context) (string, error) {
		l, err := service.Renew(ctx, lease())
		clock.see(l.ReadAt)
		return "", err
	})
	x.check(ctx, "release", 1, func(ctx context.Context) (string, error) {
		l, err := service.Release(ctx, lease())
		clock.see(l.ReadAt)
		return "", err
	})
	x.check(ctx, "history", 1, func(ctx context.Context) (string, error) {
		events, err := service.Events(ctx, leadership.EventsRequest{Election: patient, After: grant.Revision - 1})
		if len(events) > 0 {
			x.news = events[len(events)-1]
		}
		return "", err
	})
}

// clockWatch compares the times that a store says, in the order in which it said them.
type clockWatch struct {
	last  time.Time
	back  time.Duration // the furthest that a later time lay before an earlier one
	guard time.Duration
	ahead time.Duration // of this machine's clock; for people
	seen  int
}

func (w *clockWatch) get(ctx context.Context, s leadership.Store) error {
	began := time.Now()
	snap, err := s.Get(ctx, patient)
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

// verdict returns an error if the store's clocks differ by more than it allows for.
func (w *clockWatch) verdict() error {
	if w.back > w.guard {
		return fmt.Errorf("a later answer of the store had a time %v before an earlier one's, and it allows for %v: do not use this store", w.back, w.guard)
	}
	return nil
}

func (w *clockWatch) String() string {
	return fmt.Sprintf("%d times went back by %v at most, %v are allowed for; %v ahead of this machine's clock, which is not used",
		w.seen, max(w.back, 0), w.guard, w.ahead.Round(time.Millisecond))
}

// examineTopic announces a change that was made on the topic once more, as may happen at any time, and hears of it.
func (x *examination) examineTopic(ctx context.Context, topic string) {
	var bus *pubsub.Bus
	opened := x.check(ctx, "open the topic", 1, func(ctx context.Context) (detail string, err error) {
		bus, err = pubsub.Open(ctx, pubsub.Config{Topic: topic, Instance: "doctor"})
		return topic, err
	})
	if !opened {
		return
	}
	defer bus.Close()
	listening, stop := context.WithCancel(ctx)
	live, heard, ended := make(chan struct{}, 1), make(chan leadership.Event, doctorRounds), make(chan error, 1)
	go func() {
		ended <- bus.Run(listening, func(e leadership.Event) {
			if e.RequestID == x.id {
				select {
				case heard <- e:
				default:
				}
			}
		}, func(is bool) {
			if is {
				select {
				case live <- struct{}{}:
				default:
				}
			}
		})
	}()
	ready := x.check(ctx, "subscribe", 1, func(ctx context.Context) (string, error) { return "", receive(ctx, live, ended) })
	published := x.news.Revision > 0 && x.check(ctx, "publish", 1, func(ctx context.Context) (string, error) {
		_, err := bus.Publish(ctx, []leadership.Event{x.news})
		return "", err
	})
	if ready && published {
		x.check(ctx, "hear", 1, func(ctx context.Context) (string, error) { return "", receive(ctx, heard, ended) })
	}
	stop()
	if ready {
		x.check(ctx, "delete the subscription", 1, func(context.Context) (string, error) { return "", <-ended })
	}
}

func receive[T any](ctx context.Context, from <-chan T, ended <-chan error) error {
	select {
	case <-from:
		return nil
	case err := <-ended:
		return err
	case <-ctx.Done():
		return fmt.Errorf("nothing came within %v", doctorTimeout)
	}
}

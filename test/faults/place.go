package faults

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"

	"cloud.google.com/go/spanner/admin/instance/apiv1/instancepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/store"
	"regent/store/firestore"
	"regent/store/spanner"
	"regent/test/faults/record"
)

// place prepares the store and, where there are two servers, a topic. It returns the emulators that
// the servers need, by their variables, and their arguments.
func (s *session) place(ctx context.Context) (env map[string]string, args []string, err error) {
	env, args = map[string]string{}, []string{"--store", s.spec()}
	switch s.plan.Store {
	case File:
		return env, args, nil
	case Firestore:
		env["FIRESTORE_EMULATOR_HOST"] = s.setup.Firestore
	case Spanner:
		env["SPANNER_EMULATOR_HOST"] = s.setup.Spanner
		migrate := s.setup.command(regent, []string{"SPANNER_EMULATOR_HOST=" + s.setup.Spanner}, "admin", "migrate", "--store", s.spec())
		if out, err := migrate.CombinedOutput(); err != nil {
			return nil, nil, fmt.Errorf("migrate: %w: %s", err, out)
		}
	}
	env["PUBSUB_EMULATOR_HOST"] = s.setup.PubSub
	return env, append(args, "--events", "projects/"+s.id+"/topics/leadership", "--members", membersTopic(s.id)), s.announce(ctx)
}

// announce creates the topic, and listens to it until the run is over.
func (s *session) announce(ctx context.Context) (err error) {
	if s.topic, err = newTopic(ctx, s.setup.PubSub, s.id); err != nil {
		return err
	}
	listening, stop := context.WithCancel(ctx)
	var listener sync.WaitGroup
	listener.Go(func() { s.topic.consume(listening, &s.notes, s.elections()) })
	s.closing = append(s.closing, func() {
		stop()
		listener.Wait()
		s.topic.close(context.WithoutCancel(ctx)) // what stays in an emulator goes with it
	})
	return nil
}

func (s *session) spec() string {
	switch s.plan.Store {
	case Firestore:
		return "firestore:" + s.id
	case Spanner:
		return "spanner:" + s.database()
	}
	return "file:" + filepath.Join(s.dir, "leases")
}

func (s *session) database() string {
	return "projects/" + s.id + "/instances/test/databases/regent"
}

// open opens the store, past all servers and hops. The file must have been left by its server.
func (s *session) open(ctx context.Context) (service.Store, error) {
	switch s.plan.Store {
	case Firestore:
		return firestore.Open(ctx, firestore.Config{Project: s.id, Emulator: s.setup.Firestore})
	case Spanner:
		return spanner.Open(ctx, spanner.Config{Database: s.database(), EmulatorHost: s.setup.Spanner})
	}
	return store.OpenExisting(ctx, s.spec(), store.Config{})
}

// discard deletes this run's data from an emulator, which keeps everything in memory.
func (s *session) discard(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	switch s.plan.Store {
	case Firestore:
		all := fmt.Sprintf("http://%s/emulator/v1/projects/%s/databases/(default)/documents", s.setup.Firestore, s.id)
		request, err := http.NewRequestWithContext(ctx, http.MethodDelete, all, nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		return response.Body.Close()
	case Spanner:
		conn, err := grpc.NewClient("passthrough:///"+s.setup.Spanner, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return err
		}
		defer conn.Close()
		instance, _, _ := strings.Cut(s.database(), "/databases/")
		_, err = instancepb.NewInstanceAdminClient(conn).DeleteInstance(ctx, &instancepb.DeleteInstanceRequest{Name: instance})
		return err
	}
	return nil
}

// elections are all that there are, beside those of Regent's own.
func (s *session) elections() []leadership.Election {
	return record.WithSeats(s.plan.Elections, s.plan.Seats)
}

// truth is what the store has of the elections.
type truth struct {
	Records []rule.Snapshot
	History []leadership.Event
}

// read reads all of it.
func (s *session) read(ctx context.Context) (t truth, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	leases, err := s.open(ctx)
	if err != nil {
		return t, err
	}
	defer leases.Close()
	for _, e := range append(s.elections(), leadership.HaltsElection) {
		snap, err := leases.Get(ctx, e)
		if err != nil {
			return t, fmt.Errorf("the record of %s: %w", e, err)
		}
		events, err := allEvents(func(after leadership.Revision) ([]leadership.Event, error) {
			return leases.Events(ctx, e, after, leadership.MaxPageSize)
		})
		if err != nil {
			return t, fmt.Errorf("the history of %s: %w", e, err)
		}
		if e == leadership.HaltsElection && len(events) == 0 { // there was no halt
			continue
		}
		t.Records, t.History = append(t.Records, snap), append(t.History, events...)
		if last, r := events[len(events)-1], snap.Record; last.Revision != r.Revision || last.Token != r.Token {
			return t, fmt.Errorf("the record of %s has revision %d and token %d, and its history ends with %+v", e, r.Revision, r.Token, last)
		}
	}
	return t, nil
}

// allEvents reads page after page.
func allEvents(page func(after leadership.Revision) ([]leadership.Event, error)) (all []leadership.Event, err error) {
	for after := leadership.Revision(0); ; after = all[len(all)-1].Revision {
		events, err := page(after)
		if err != nil {
			return all, err
		}
		all = append(all, events...)
		if len(events) < leadership.MaxPageSize {
			return all, nil
		}
	}
}

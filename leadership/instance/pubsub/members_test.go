package pubsub_test

import (
	"context"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/store/memory"
)

func TestInstancesTellEachOtherOfMembers(t *testing.T) {
	onBoth(t, func(t *testing.T, s *service) {
		store := memory.New(memory.Config{})
		var both []*instance.Instance
		for _, name := range []string{"a", "b"} {
			i, err := instance.New(instance.Config{Store: store.Open(), Name: name, Members: s.messages(t)})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				i.Run(ctx)
			}()
			t.Cleanup(func() {
				cancel()
				<-ended
			})
			both = append(both, i)
		}
		if _, err := both[0].Acquire(t.Context(), leadership.AcquireRequest{Election: "jobs", CandidateID: "lea"}); err != nil {
			t.Fatal(err)
		}
		join := leadership.JoinRequest{Election: "jobs", CandidateID: "fay", Role: leadership.RoleWorker, TTL: time.Minute, Note: "über"}
		if _, err := both[0].Join(t.Context(), join); err != nil {
			t.Fatal(err)
		}
		becomes := func(what string, enough func(leadership.Members) bool) {
			t.Helper()
			for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
				m, err := both[1].Members(t.Context(), "jobs")
				if err != nil {
					t.Fatal(err)
				}
				if enough(m) {
					return
				}
				if time.Now().After(end) {
					t.Fatalf("%s: the other instance says %+v", what, m)
				}
			}
		}
		becomes("one has joined", func(m leadership.Members) bool {
			return m.Complete && len(m.Members) == 2 && m.Members[0].ID == "fay" && m.Members[0].Role == leadership.RoleWorker && m.Members[0].Note == join.Note
		})
		if err := both[1].Leave(t.Context(), leadership.LeaveRequest{Election: "jobs", CandidateID: "fay"}); err != nil {
			t.Fatal(err)
		}
		becomes("it has left", func(m leadership.Members) bool { return len(m.Members) == 1 })
		s.deleteTopic(t)
		becomes("the topic is gone", func(m leadership.Members) bool { return !m.Complete })
	})
}

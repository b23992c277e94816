package test

import (
	"context"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"regent/leadership"
)

// A principal that may publish to the topic of members invents one. The members that instances tell
// each other of are still known.
func TestAMemberThatNoInstanceToldOfIsNotBelieved(t *testing.T) {
	t.Parallel()
	on := newTopic(t)
	members := on.project + "/topics/members"
	in := inFirestore(t).announcing(on).with("--members", members)
	a, b := live(t, in.serve(t)), live(t, in.serve(t))
	ctx := within(t, patience)
	if err := configure(ctx, a, "jobs", 0); err != nil {
		t.Fatal(err)
	}
	await := func(what string, done func() bool) {
		t.Helper()
		for !done() {
			select {
			case <-ctx.Done():
				t.Fatalf("never: %s\nA says:\n%s\nB says:\n%s", what, a.log, b.log)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	if _, err := a.client.Join(ctx, leadership.JoinRequest{Election: "jobs", CandidateID: "fay", Role: leadership.RoleFollower, TTL: time.Minute}); err != nil {
		t.Fatal(err)
	}
	await("B knows the member of A", func() bool { return knows(ctx, b, "fay") })
	if log := b.log.String(); strings.Contains(log, "was refused") {
		t.Errorf("an instance refuses what another has sent:\n%s", log)
	}
	forged := &pubsubpb.PublishRequest{Topic: members, Messages: []*pubsubpb.PubsubMessage{
		{Data: []byte(`{"v":1,"from":"forger","seq":1,"elections":[{"e":"jobs","m":[{"id":"mallory","r":"follower"}]}]}`)},
	}}
	if _, err := pubsubpb.NewPublisherClient(on.conn).Publish(ctx, forged); err != nil {
		t.Fatal(err)
	}
	await("B refuses the forged message", func() bool {
		if knows(ctx, b, "mallory") {
			t.Fatal("a member that no instance told of counts")
		}
		return strings.Contains(b.log.String(), "a message of the topic of members was refused")
	})
}

// knows reports whether the server counts the member.
func knows(ctx context.Context, s *server, id leadership.CandidateID) bool {
	all, err := s.client.Members(ctx, "jobs")
	for _, m := range all.Members {
		if err == nil && m.ID == id {
			return true
		}
	}
	return false
}

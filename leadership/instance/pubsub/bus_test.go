package pubsub_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"regent/leadership/instance/pubsub"
)

func TestATopicHasItsFullName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"projects/my-project/topics/regent", "projects/example.com:old/topics/a_.~+%-9", "projects/p1/topics/" + strings.Repeat("a", 255)} {
		project, topic, err := pubsub.ParseTopic(name)
		if err != nil || "projects/"+project+"/topics/"+topic != name {
			t.Errorf("%s is read as %q and %q: %v", name, project, topic, err)
		}
	}
	for _, name := range []string{
		"", "regent", "none", "projects/p", "projects//topics/regent", "projects/p/topics/", "projects/p/topics/ab", "projects/p/topics/9lives",
		"projects/p/topics/google", "projects/p/topics/a b c", "projects/P/topics/regent", "projects/p/subscriptions/regent", "/projects/p/topics/regent",
		"projects/p/topics/regent/", "project/p/topics/regent", "projects/p q/topics/regent", "projects/p/topics/" + strings.Repeat("a", 256), "projects/p/topics/abc\xff",
	} {
		if project, topic, err := pubsub.ParseTopic(name); err == nil {
			t.Errorf("%q is read as %q and %q", name, project, topic)
		}
		if b, err := pubsub.Open(t.Context(), pubsub.Config{Topic: name, Emulator: "127.0.0.1:1"}); err == nil {
			b.Close()
			t.Errorf("a bus was opened on the topic %q", name)
		}
		if _, err := pubsub.OpenMessages(t.Context(), pubsub.Config{Topic: name}); err == nil {
			t.Errorf("messages were opened on the topic %q", name)
		}
	}
}

func TestAConfigurationThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]pubsub.Config{
		"a negative probe":           {Probe: -1},
		"an endpoint of an emulator": {PublishEndpoint: "europe-west4-pubsub.googleapis.com:443"},
	} {
		c.Topic, c.Emulator = "projects/p/topics/regent", "127.0.0.1:1"
		if b, err := pubsub.Open(t.Context(), c); err == nil {
			b.Close()
			t.Errorf("%s: a bus was opened", what)
		}
	}
}

func TestABusOpensWithoutTheService(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // to create the topic
	defer cancel()
	log := newJournal()
	b, err := pubsub.Open(ctx, pubsub.Config{Topic: "projects/p/topics/regent", Emulator: "127.0.0.1:1", Probe: time.Second, Log: slog.New(log)})
	require.NoError(t, err)
	defer b.Close()
	l := listen(t, b)
	log.await(t, "events are not heard")
	if acked, err := b.Publish(ctx, history("reports", 1, 1)); acked != 0 || err == nil {
		t.Errorf("%d acknowledged, %v", acked, err)
	}
	if err := l.stop(); err == nil {
		t.Error("the end knows nothing of the subscription, which may exist")
	}
	if told := l.told(); len(told) > 0 {
		t.Errorf("live was told %v", told)
	}
}

func TestTheTopicIsCreatedOnAnEmulatorAndNowhereElse(t *testing.T) {
	s := newFake(t)
	t.Setenv("PUBSUB_EMULATOR_HOST", "")
	service, err := pubsub.Open(t.Context(), pubsub.Config{Topic: s.topic, Options: []option.ClientOption{
		option.WithEndpoint(s.addr), option.WithoutAuthentication(), option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
	}})
	require.NoError(t, err)
	defer service.Close()
	get := &pubsubpb.GetTopicRequest{Topic: s.topic}
	if _, err := s.topics.GetTopic(t.Context(), get); err == nil {
		t.Error("a topic of the service was created")
	}
	t.Setenv("PUBSUB_EMULATOR_HOST", s.addr)
	for range 2 {
		emulated, err := pubsub.Open(t.Context(), pubsub.Config{Topic: s.topic})
		require.NoError(t, err)
		defer emulated.Close()
		_, err = s.topics.GetTopic(t.Context(), get)
		assert.NoError(t, err)
	}
}

func TestWithoutCredentialsNoBusOpens(t *testing.T) {
	t.Setenv("PUBSUB_EMULATOR_HOST", "")
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", t.TempDir()+"/missing.json")
	if b, err := pubsub.Open(t.Context(), pubsub.Config{Topic: "projects/p/topics/regent"}); err == nil {
		b.Close()
		t.Error("it was opened")
	}
}

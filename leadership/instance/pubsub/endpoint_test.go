package pubsub_test

import (
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

// TestEventsArePublishedThroughTheEndpointAndHeardAnywhere has a server that stands for the
// endpoint of a region, and one for the service as it is reached otherwise.
func TestEventsArePublishedThroughTheEndpointAndHeardAnywhere(t *testing.T) {
	t.Setenv("PUBSUB_EMULATOR_HOST", "")
	region, nearest := newFake(t), newFake(t)
	for _, s := range []*service{region, nearest} {
		_, err := s.topics.CreateTopic(t.Context(), &pubsubpb.Topic{Name: nearest.topic})
		require.NoError(t, err)
	}
	b, err := pubsub.Open(t.Context(), pubsub.Config{
		Topic: nearest.topic, Instance: "test", Probe: time.Second, PublishEndpoint: region.addr,
		Options: []option.ClientOption{
			option.WithEndpoint(nearest.addr), option.WithoutAuthentication(),
			option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
		},
	})
	require.NoError(t, err)
	defer b.Close()
	l := listenLive(t, b)
	if acked, err := b.Publish(t.Context(), history("reports", 1, 2)); acked != 2 || err != nil {
		t.Fatalf("%d acknowledged, %v", acked, err)
	}
	if here, there := len(region.fake.Messages()), len(nearest.fake.Messages()); here != 2 || there != 0 {
		t.Errorf("%d messages came to the endpoint and %d elsewhere, want 2 and none", here, there)
	}
	assert.NoError(t, l.stop())
}

func TestEndpointIsAHostAndAPort(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"europe-west4-pubsub.googleapis.com:443", "pubsub.europe-west4.rep.googleapis.com:443", "127.0.0.1:8085", "[::1]:8085", "localhost:1"} {
		assert.NoError(t, pubsub.ParseEndpoint(good), good)
	}
	for _, bad := range []string{
		"europe-west4", "europe-west4-pubsub.googleapis.com", "https://europe-west4-pubsub.googleapis.com", "https://europe-west4-pubsub.googleapis.com:443",
		":443", "a:0", "a:65536", "a:x", "a b:443", "a..b:443", "-a:443", "a:443/", "a:443\n", "Ä:443", strings.Repeat("a", 64) + ":443", "::1:443",
	} {
		err := pubsub.ParseEndpoint(bad)
		if err == nil || !strings.Contains(err.Error(), "europe-west4-pubsub.googleapis.com:443") {
			t.Errorf("%q: got %v, want an error with an example", bad, err)
		}
		if b, err := pubsub.Open(t.Context(), pubsub.Config{Topic: "projects/p/topics/regent", PublishEndpoint: bad}); err == nil {
			b.Close()
			t.Errorf("%q: a bus was opened", bad)
		}
	}
}

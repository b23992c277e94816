//go:build !regent_local

package pubsub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	apiv1 "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"regent/leadership"
	"regent/leadership/instance/internal/backoff"
)

// Config says how to open a Bus. Topic is required.
type Config struct {
	// Topic is the full name of the topic; see ParseTopic.
	Topic string
	// Instance is shown in the name of this instance's subscription, as far as it can be: the
	// revision of a service, or the name of a host. It need not be unique.
	Instance string
	// Probe is how long no message may come before Run probes the subscription. 0 is 8 s. A shorter
	// time notices a cut connection sooner and probes more often. While the service answers pings,
	// Run pings it twice in that time, and probes once in four times as long.
	Probe time.Duration
	// Emulator is the host:port of an emulator. If it is empty PUBSUB_EMULATOR_HOST is used, and if
	// that is empty too, the service.
	Emulator string
	// PublishEndpoint is the HOST:PORT that events are published through; see ParseEndpoint. If it
	// is empty they go through the nearest region. Pub/Sub keeps the order of a key only among
	// messages that are published in one region, so instances in several regions must share one
	// endpoint.
	PublishEndpoint string
	// Options are for each connection, after this package's own: credentials, the endpoint of a
	// region. They must not supply a connection, because each failure is followed by a new one.
	Options []option.ClientOption
	// Log gets a line when hearing begins and ends, and for messages that are no events. Nil logs
	// nothing.
	Log *slog.Logger
}

const (
	defaultProbe     = 8 * time.Second
	defaultHeartbeat = 30 * time.Minute
	emulatorTimeout  = 5 * time.Second // to create the topic of an emulator

	maxPublish     = 100             // events in one request
	publishTimeout = 5 * time.Second // of one request, with the library's own retries
)

// Bus is one instance's connection to a topic of events. Its methods may be called concurrently.
type Bus struct{ *connection }

// connection is one instance's connection to a topic.
type connection struct {
	topic     string
	project   string // projects/P
	instance  string
	probe     time.Duration
	heartbeat time.Duration
	options   []option.ClientOption
	log       *slog.Logger
	publisher *apiv1.TopicAdminClient
	doubt     chan struct{} // of one: a publication has failed because the topic does not exist
}

// Open returns a bus, which the caller must close. It fails only for a wrong configuration or
// missing credentials: while the service is out of reach or the topic does not exist, Publish fails
// and Run waits. On an emulator it creates the topic, if that takes at most 5 s.
func Open(ctx context.Context, c Config) (*Bus, error) {
	connection, err := connect(ctx, c)
	if err != nil {
		return nil, err
	}
	return &Bus{connection}, nil
}

func connect(ctx context.Context, c Config) (*connection, error) {
	project, _, err := ParseTopic(c.Topic)
	if err != nil {
		return nil, err
	}
	if c.Probe < 0 {
		return nil, fmt.Errorf("pubsub: probe is a duration of more than 0s, not %v", c.Probe)
	}
	emulator := cmp.Or(c.Emulator, os.Getenv("PUBSUB_EMULATOR_HOST"))
	if err := c.checkEndpoint(emulator); err != nil {
		return nil, err
	}
	b := &connection{
		topic:     c.Topic,
		project:   "projects/" + project,
		instance:  c.Instance,
		probe:     cmp.Or(c.Probe, defaultProbe),
		heartbeat: defaultHeartbeat,
		options:   append(connectionOptions(emulator), c.Options...),
		log:       cmp.Or(c.Log, slog.New(slog.DiscardHandler)),
		doubt:     make(chan struct{}, 1),
	}
	publishing := slices.Clip(b.options)
	if c.PublishEndpoint != "" {
		publishing = append(publishing, option.WithEndpoint(c.PublishEndpoint)) // the last one counts
	}
	if b.publisher, err = apiv1.NewTopicAdminClient(ctx, publishing...); err != nil {
		return nil, fmt.Errorf("pubsub: %w", err)
	}
	if emulator != "" {
		b.createTopic(ctx)
	}
	return b, nil
}

func (c Config) checkEndpoint(emulator string) error {
	if c.PublishEndpoint == "" {
		return nil
	}
	if err := ParseEndpoint(c.PublishEndpoint); err != nil {
		return fmt.Errorf("pubsub: %w", err)
	}
	if emulator != "" {
		return fmt.Errorf("pubsub: the emulator at %s has no endpoint of a region; leave out %s, or unset PUBSUB_EMULATOR_HOST", emulator, c.PublishEndpoint)
	}
	return nil
}

// Bound returns the time within which Run notices a silent break of the connection, but not the
// loss of the subscription.
func (c *connection) Bound() time.Duration { return c.probe + c.probeTimeout() }

// LossBound returns the time within which Run notices that its subscription is useless, because its
// topic was deleted or the right to it was lost.
func (c *connection) LossBound() time.Duration { return rarely*c.probe + c.probeTimeout() }

func (c *connection) probeTimeout() time.Duration { return c.probe / 2 }

// Close closes the connection that publishes; Publish fails from then on. A Run ends with its own
// context.
func (c *connection) Close() error {
	if err := c.publisher.Close(); err != nil {
		return fmt.Errorf("pubsub: %w", err)
	}
	return nil
}

// connectionOptions returns this package's own options. With the keepalive, a connection that died
// silently is given up within 40 s, on Linux within 10 s after a message was sent on it; without
// it, every call would fail for a quarter of an hour.
func connectionOptions(emulator string) []option.ClientOption {
	options := []option.ClientOption{option.WithGRPCDialOption(grpc.WithKeepaliveParams(
		keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second},
	))}
	if emulator == "" {
		return options
	}
	return append(options,
		option.WithEndpoint(emulator),
		option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
		option.WithGRPCDialOption(grpc.WithNoProxy()),
	)
}

// subscriber returns a client with one connection of its own, which a stream and its probes share.
func (c *connection) subscriber(ctx context.Context) (*apiv1.SubscriptionAdminClient, error) {
	options := append(slices.Clip(c.options), option.WithGRPCConnectionPool(1))
	client, err := apiv1.NewSubscriptionAdminClient(ctx, options...)
	if err != nil {
		return nil, err
	}
	// The library would retry these two silently; Run retries them and logs it.
	client.CallOptions.CreateSubscription, client.CallOptions.StreamingPull = nil, nil
	return client, nil
}

// createTopic creates the topic on an emulator, which starts with none.
func (c *connection) createTopic(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, emulatorTimeout)
	defer cancel()
	_, err := c.publisher.CreateTopic(ctx, &pubsubpb.Topic{Name: c.topic})
	if err != nil && status.Code(err) != codes.AlreadyExists {
		c.log.WarnContext(ctx, "the emulator's topic is not created", "topic", c.topic, "cause", err)
	}
}

// Publish announces events, those of one election in the order of their revisions, and blocks until
// Pub/Sub has acknowledged them or ctx ends. It returns how many at the front were acknowledged:
// all, unless there is an error. After an error the events of the next request (up to 100 of one
// election) may have been published as well, but no later ones. Calling it again from the first
// unacknowledged event loses nothing and keeps the order of first deliveries.
//
// Each request takes at most 5 s. Calls for one election must not overlap unless they begin with
// the same event.
func (b *Bus) Publish(ctx context.Context, events []leadership.Event) (acked int, err error) {
	for acked < len(events) {
		batch := batchOf(events[acked:])
		if err := b.publish(ctx, batch); err != nil {
			return acked, fmt.Errorf("pubsub: publish %q from revision %d: %w", batch[0].Election, batch[0].Revision, err)
		}
		acked += len(batch)
	}
	return acked, nil
}

// batchOf returns the events of the next request: Pub/Sub takes one ordering key in each.
func batchOf(events []leadership.Event) []leadership.Event {
	n := 1
	for n < min(len(events), maxPublish) && events[n].Election == events[0].Election {
		n++
	}
	return events[:n]
}

func (b *Bus) publish(ctx context.Context, events []leadership.Event) error {
	var messages []*pubsubpb.PubsubMessage
	for _, e := range events {
		m, err := encode(e)
		if err != nil {
			return err
		}
		messages = append(messages, m)
	}
	return b.send(ctx, messages)
}

// send publishes messages in one request, which takes at most 5 s.
func (c *connection) send(ctx context.Context, messages []*pubsubpb.PubsubMessage) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	_, err := c.publisher.Publish(ctx, &pubsubpb.PublishRequest{Topic: c.topic, Messages: messages})
	if status.Code(err) == codes.NotFound {
		backoff.Signal(c.doubt)
	}
	return withContext(ctx, err)
}

// withContext lets errors.Is find the error of a context that ended a call, which gRPC words
// differently.
func withContext(ctx context.Context, err error) error {
	if ended := ctx.Err(); err != nil && ended != nil && !errors.Is(err, ended) {
		return fmt.Errorf("%w: %w", ended, err)
	}
	return err
}

package pubsub

import (
	"cmp"
	"context"
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
)

// Config is how a Bus is opened. Topic is required.
type Config struct {
	// Topic is the full name of the topic; see ParseTopic.
	Topic string
	// Instance stands in the name of this instance's subscription, for people, as far as it can: the revision of a service, the name of a host.
	// It need not be unique; a random end sees to that.
	Instance string
	// Probe is for how long nothing may be heard before it is asked whether anything can be: 8 s if it is zero. A shorter one notices a cut
	// connection sooner, and asks more often.
	Probe time.Duration
	// Emulator is the host:port of an emulator; if it is empty PUBSUB_EMULATOR_HOST is, and if that is empty too, the service is meant.
	Emulator string
	// Options are for each connection, after this package's own: credentials, the endpoint of a region. A connection itself cannot be given:
	// each failure is followed by a new one.
	Options []option.ClientOption
	// Log is told when hearing begins and ends, and of messages that are no events: nobody if it is nil.
	Log *slog.Logger
}

const (
	defaultProbe     = 8 * time.Second
	defaultHeartbeat = 30 * time.Minute
	emulatorTimeout  = 5 * time.Second // for the topic of an emulator to be created
)

// Bus is one instance's way to the topic. All methods may be called at the same time.
type Bus struct {
	topic     string
	project   string // projects/P
	instance  string
	probe     time.Duration
	heartbeat time.Duration
	options   []option.ClientOption
	log       *slog.Logger
	publisher *apiv1.TopicAdminClient
	doubt     chan struct{} // of one: the topic was not found by Publish
}

// Open returns a bus, to be closed by its owner. It fails only for a wrong configuration or for want of credentials: with the service out of
// reach or the topic gone, Publish fails until that is over, and Run waits. On an emulator it creates the topic if it is missing and the
// emulator answers within 5 s.
func Open(ctx context.Context, c Config) (*Bus, error) {
	project, _, err := ParseTopic(c.Topic)
	if err != nil {
		return nil, err
	}
	if c.Probe < 0 {
		return nil, fmt.Errorf("pubsub: probe is a duration of more than 0s, not %v", c.Probe)
	}
	emulator := cmp.Or(c.Emulator, os.Getenv("PUBSUB_EMULATOR_HOST"))
	b := &Bus{
		topic:     c.Topic,
		project:   "projects/" + project,
		instance:  c.Instance,
		probe:     cmp.Or(c.Probe, defaultProbe),
		heartbeat: defaultHeartbeat,
		options:   append(connectionOptions(emulator), c.Options...),
		log:       cmp.Or(c.Log, slog.New(slog.DiscardHandler)),
		doubt:     make(chan struct{}, 1),
	}
	if b.publisher, err = apiv1.NewTopicAdminClient(ctx, b.options...); err != nil {
		return nil, fmt.Errorf("pubsub: %w", err)
	}
	if emulator != "" {
		b.createTopic(ctx)
	}
	return b, nil
}

// Bound is within what time a break is noticed at the latest, though nothing says so but silence; see the package's comment.
func (b *Bus) Bound() time.Duration { return b.probe + b.probeTimeout() }

func (b *Bus) probeTimeout() time.Duration { return b.probe / 2 }

// Close gives back what publishing holds; Publish fails from then on. A Run ends with its own context.
func (b *Bus) Close() error {
	if err := b.publisher.Close(); err != nil {
		return fmt.Errorf("pubsub: %w", err)
	}
	return nil
}

// connectionOptions are this package's own. With the keepalive, a connection that died silently is given up within 40 s, on Linux within 10 s
// of when something was sent on it; without, it would fail every call for a quarter of an hour.
func connectionOptions(emulator string) []option.ClientOption {
	options := []option.ClientOption{
		option.WithGRPCDialOption(grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second})),
	}
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

// subscriber makes a connection of its own: one, so that a stream and its probes share it.
func (b *Bus) subscriber(ctx context.Context) (*apiv1.SubscriptionAdminClient, error) {
	client, err := apiv1.NewSubscriptionAdminClient(ctx, append(slices.Clip(b.options), option.WithGRPCConnectionPool(1))...)
	if err != nil {
		return nil, err
	}
	client.CallOptions.CreateSubscription, client.CallOptions.StreamingPull = nil, nil // Run tries again by itself, and says so
	return client, nil
}

// createTopic is for an emulator, which begins with none.
func (b *Bus) createTopic(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, emulatorTimeout)
	defer cancel()
	_, err := b.publisher.CreateTopic(ctx, &pubsubpb.Topic{Name: b.topic})
	if err != nil && status.Code(err) != codes.AlreadyExists {
		b.log.LogAttrs(ctx, slog.LevelWarn, "the emulator's topic is not created", slog.String("topic", b.topic), slog.Any("cause", err))
	}
}

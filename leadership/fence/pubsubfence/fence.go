package pubsubfence

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"cloud.google.com/go/pubsub/v2"

	"regent/leadership"
	"regent/leadership/fence"
)

// The attributes of a leader's message.
const (
	ElectionAttribute = "election"
	TokenAttribute    = "fencingToken" // 1 to leadership.MaxToken, in decimal
)

// Stamp sets the attributes of a message by the leader named by w. It returns an error if w is not
// a valid mark.
func Stamp(m *pubsub.Message, w fence.Mark) error {
	if _, err := (fence.Mark{}).Admit(w); err != nil {
		return err
	}
	if m.Attributes == nil {
		m.Attributes = make(map[string]string, 2)
	}
	m.Attributes[ElectionAttribute] = string(w.Election)
	m.Attributes[TokenAttribute] = strconv.FormatInt(int64(w.Token), 10)
	return nil
}

// MarkOf reads the attributes that Stamp sets. Its error is a *leadership.Error with the code
// InvalidArgument and the attribute's name as its Field.
func MarkOf(m *pubsub.Message) (fence.Mark, error) {
	text := m.Attributes[TokenAttribute]
	token, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strconv.FormatInt(token, 10) != text {
		return fence.Mark{}, &leadership.Error{Code: leadership.InvalidArgument, Field: TokenAttribute, Detail: fmt.Sprintf(
			"the attribute %s is the fencing token of the sender's lease, in decimal digits, not %.64q; stamp each message", TokenAttribute, text)}
	}
	w := fence.Mark{Election: leadership.Election(m.Attributes[ElectionAttribute]), Token: leadership.Token(token)}
	if _, err := (fence.Mark{}).Admit(w); err != nil {
		return fence.Mark{}, err
	}
	return w, nil
}

// Marks keeps the highest token of each resource, as the Marks of httpfence do.
type Marks interface {
	// Raise makes w the mark of the resource, as Mark.Admit does, in one step: it compares and
	// raises, or it returns Admit's error and leaves the mark as it is. After any other error it is
	// not known whether the mark was raised.
	Raise(ctx context.Context, resource string, w fence.Mark) error
}

// Config configures a Fence. Election is required.
type Config struct {
	// Election guards what the handler changes. Messages of other elections are refused.
	Election leadership.Election
	// Resource returns the name, for the Marks, of the resource that a message changes. It must not
	// take more names from messages than there are resources. nil: all messages change one
	// resource, named as the election.
	Resource func(*pubsub.Message) string
	// Marks are raised before a message is handled; nil: marks in memory.
	Marks Marks
	// Refused, if set, is called for each message that is not handled, for logs and metrics, or to
	// publish it elsewhere. One whose error has the code TokenStale is acknowledged when Refused
	// has returned, unless Refused has called its Nack. Refused may be called concurrently.
	Refused func(*pubsub.Message, error)
}

// Fence keeps the messages of former leaders from a handler. Its methods may be called
// concurrently.
type Fence struct{ config Config }

// New returns a fence. It returns an error if the Config is invalid.
func New(c Config) (*Fence, error) {
	if err := c.Election.Validate(); err != nil {
		return nil, fmt.Errorf("pubsubfence: Election: %w", err)
	}
	if c.Resource == nil {
		c.Resource = func(*pubsub.Message) string { return string(c.Election) }
	}
	if c.Marks == nil {
		c.Marks = new(memory)
	}
	if c.Refused == nil {
		c.Refused = func(*pubsub.Message, error) {}
	}
	return &Fence{c}, nil
}

// Wrap returns a function for Subscriber.Receive that passes messages to handle unless a later
// leader has overtaken their sender. handle must acknowledge them; the others are acknowledged, or
// not, as the package comment describes.
func (f *Fence) Wrap(handle func(context.Context, *pubsub.Message)) func(context.Context, *pubsub.Message) {
	return func(ctx context.Context, m *pubsub.Message) {
		w, err := f.admit(ctx, m)
		if err == nil {
			handle(context.WithValue(ctx, markKey{}, w), m)
			return
		}
		f.config.Refused(m, err) // before the acknowledgement, so that the message is not lost with the process
		if errors.Is(err, leadership.TokenStale) {
			m.Ack()
		} else {
			m.Nack()
		}
	}
}

func (f *Fence) admit(ctx context.Context, m *pubsub.Message) (fence.Mark, error) {
	w, err := MarkOf(m)
	switch {
	case err != nil:
		return w, err
	case w.Election != f.config.Election:
		return w, &leadership.Error{Code: leadership.InvalidArgument, Field: ElectionAttribute, Detail: fmt.Sprintf(
			"election %q guards this subscriber, but the message's sender leads election %q", f.config.Election, w.Election)}
	}
	return w, f.config.Marks.Raise(ctx, f.config.Resource(m), w)
}

// memory is Marks that end with the process.
type memory struct{ guard fence.Guard }

func (s *memory) Raise(_ context.Context, resource string, w fence.Mark) error {
	return s.guard.Do(resource, w, func() error { return nil })
}

type markKey struct{}

// FromContext returns the mark of the leader whose message a Fence has admitted, for a write that
// compares it once more. ok is false for a context that did not come through a Fence.
func FromContext(ctx context.Context) (w fence.Mark, ok bool) {
	w, ok = ctx.Value(markKey{}).(fence.Mark)
	return w, ok
}

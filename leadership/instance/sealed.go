package instance

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"sync/atomic"

	"regent/leadership/instance/internal/backoff"
)

// Sealed is a MemberBus whose messages carry a MAC by the secret that all instances on a store
// share. So a principal that may publish to the topic, but not read the store, cannot invent
// members. It can repeat messages; Regent's sheets are numbered.
type Sealed struct {
	Bus     MemberBus
	Secret  func(context.Context) ([]byte, error) // service.SharedSecret. Until it succeeds, nothing is sent or heard
	Refused func()                                // called for a message with a wrong MAC, which is dropped

	known atomic.Pointer[[]byte] // the secret; nil until it is known
}

// seal returns the message behind its MAC.
func (s *Sealed) seal(ctx context.Context, message []byte) ([]byte, error) {
	secret := s.known.Load()
	if secret == nil {
		found, err := s.Secret(ctx)
		if err != nil {
			return nil, err
		}
		secret = &found
		s.known.Store(secret)
	}
	h := hmac.New(sha256.New, *secret)
	h.Write([]byte("regent sheet of members 1\x00"))
	h.Write(message)
	return append(h.Sum(nil), message...), nil
}

func (s *Sealed) Publish(ctx context.Context, message []byte) error {
	sealed, err := s.seal(ctx, message)
	if err != nil {
		return err
	}
	return s.Bus.Publish(ctx, sealed)
}

func (s *Sealed) Run(ctx context.Context, hear func([]byte), live func(bool)) error {
	for _, err := s.seal(ctx, nil); err != nil && ctx.Err() == nil; _, err = s.seal(ctx, nil) {
		backoff.Sleep(ctx, failing)
	}
	return s.Bus.Run(ctx, func(sealed []byte) {
		message := sealed[min(sha256.Size, len(sealed)):]
		if again, err := s.seal(ctx, message); err == nil && hmac.Equal(again, sealed) {
			hear(message)
		} else {
			s.Refused()
		}
	}, live)
}

package instance_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership/instance"
)

// sealedEnd is an end of the bus that keeps what it hears.
type sealedEnd struct {
	*instance.Sealed
	mu      sync.Mutex // guards all below
	heard   []string
	refused int
}

func (e *sealedEnd) state() ([]string, int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.heard), e.refused
}

// sealedBy starts an end whose store has the secret, or fails to tell it.
func sealedBy(t *testing.T, bus instance.MemberBus, secret func() ([]byte, error)) *sealedEnd {
	e := new(sealedEnd)
	e.Sealed = &instance.Sealed{Bus: bus, Secret: func(context.Context) ([]byte, error) { return secret() }, Refused: func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.refused++
	}}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		e.Run(ctx, func(m []byte) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.heard = append(e.heard, string(m))
		}, func(bool) {})
	}()
	t.Cleanup(func() { stop(); <-ran })
	synctest.Wait()
	return e
}

// tap keeps what passes the bus.
type tap struct {
	instance.MemberBus
	said [][]byte
}

func (b *tap) Publish(ctx context.Context, m []byte) error {
	b.said = append(b.said, bytes.Clone(m))
	return b.MemberBus.Publish(ctx, m)
}

func TestASheetWithoutTheStoresSecretIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bus := &memberBus{cut: make(map[*memberLine]bool), ears: make(map[*memberLine]memberEar)}
		secret := func(text string) func() ([]byte, error) { return func() ([]byte, error) { return []byte(text), nil } }
		wire := &tap{MemberBus: &memberLine{bus}}
		a := sealedBy(t, wire, secret("the store's"))
		b := sealedBy(t, &memberLine{bus}, secret("the store's"))
		other := sealedBy(t, &memberLine{bus}, secret("of another store"))
		require.NoError(t, a.Publish(t.Context(), []byte("sheet")))
		sealed := wire.said[0]
		forger := &memberLine{bus}
		forged := [][]byte{nil, []byte("sheet"), sealed[:31], sealed[:32], append(bytes.Clone(sealed), 's')}
		for i := range sealed {
			changed := bytes.Clone(sealed)
			changed[i] ^= 1
			forged = append(forged, changed)
		}
		for _, m := range forged {
			require.NoError(t, forger.Publish(t.Context(), m))
		}
		if heard, refused := b.state(); !slices.Equal(heard, []string{"sheet"}) || refused != len(forged) {
			t.Errorf("heard %q, and refused %d of %d forged messages", heard, refused, len(forged))
		}
		if heard, refused := other.state(); len(heard) > 0 || refused != 1+len(forged) {
			t.Errorf("with another store's secret it heard %q and refused %d", heard, refused)
		}
	})
}

func TestWithoutTheSecretNoSheetIsSentOrHeardUntilItIsKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bus := &memberBus{cut: make(map[*memberLine]bool), ears: make(map[*memberLine]memberEar)}
		away, asked := errors.New("the store is away"), new(atomic.Int64)
		a := sealedBy(t, &memberLine{bus}, func() ([]byte, error) {
			if asked.Add(1) < 3 {
				return nil, away
			}
			return []byte("the store's"), nil
		})
		assert.ErrorIs(t, a.Publish(t.Context(), []byte("early")), away, "without the secret")
		time.Sleep(time.Minute)
		synctest.Wait()
		require.NoError(t, a.Publish(t.Context(), []byte("sheet")))
		if heard, refused := a.state(); !slices.Equal(heard, []string{"sheet"}) || refused > 0 || asked.Load() != 3 {
			t.Errorf("heard %q, refused %d, asked for the secret %d times", heard, refused, asked.Load())
		}
	})
}

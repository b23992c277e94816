package calls

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestCloseWaitsForTheCallsUnderWayAndLetsNoMoreIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Gate
		require.NoError(t, g.Enter())
		closed := make(chan bool, 1)
		go func() { closed <- g.Close() }()
		synctest.Wait()
		if err := g.Enter(); !errors.Is(err, ErrClosed) {
			t.Errorf("a call after Close: %v, want %v", err, ErrClosed)
		}
		if len(closed) > 0 {
			t.Error("Close did not wait")
		}
		g.Leave()
		if !<-closed || g.Close() {
			t.Error("the first Close and no other is the first")
		}
	})
}

package store

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/instance"
)

// A reader of a stream whose server began anew with nothing must not go on as if it had missed
// nothing.
func TestAStoreInMemoryRefusesTheCursorOfAnEarlierProcess(t *testing.T) {
	t.Parallel()
	process := func() *instance.Instance {
		s, err := Open(t.Context(), "memory:", Config{})
		require.NoError(t, err)
		inst, err := instance.New(instance.Config{Store: s, Alone: true})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); inst.Run(ctx) }()
		t.Cleanup(func() { cancel(); <-ended })
		return inst
	}
	feed := func(inst *instance.Instance, after instance.Cursor) (*instance.Feed, error) {
		f, err := inst.Feed(t.Context(), leadership.Selection{}, after)
		if err == nil {
			t.Cleanup(f.Close)
		}
		return f, err
	}
	first := process()
	f, err := feed(first, instance.Cursor{})
	require.NoError(t, err)
	if _, err := feed(first, f.Cursor()); err != nil {
		t.Errorf("the process that gave the cursor: %v", err)
	}
	second := process()
	if _, err := feed(second, f.Cursor()); !errors.Is(err, leadership.HistoryCompacted) {
		t.Errorf("the next process: got %v, want %s", err, leadership.HistoryCompacted)
	}
	if _, err := feed(second, instance.Cursor{}); err != nil {
		t.Errorf("the next process, without a cursor: %v", err)
	}
}

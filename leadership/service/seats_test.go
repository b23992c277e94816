package service_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/service"
	"regent/store/memory"
	"regent/store/storetest"
)

func TestAChangeOfWhichASeatCannotBeToldIsNotSaidToBeUndone(t *testing.T) {
	t.Parallel()
	down := true
	store := &storetest.Fake{Store: memory.New(memory.Config{}), Around: func(ctx context.Context, c storetest.Call, next func(context.Context) error) error {
		if down && c.Method == "Update" && c.Election == "gpu.1" {
			return fmt.Errorf("fake: %w", leadership.StoreUnavailable)
		}
		return next(ctx)
	}}
	s := service.New(store)
	two := leadership.Configure{Election: "gpu", Config: leadership.Config{Seats: 2}}
	_, err := s.Do(t.Context(), two)
	assert.ErrorIs(t, err, leadership.OutcomeUnknown)
	down = false
	l, err := s.Do(t.Context(), two)
	require.NoError(t, err)
	assert.Equal(t, 2, l.Config.Seats)
}

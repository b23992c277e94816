package counts

import (
	"context"
	"time"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/service"
)

// Readers returns the cost of so many readers that read one election from the cache of one instance
// for so long, each once a second. The election is held and nothing happens to it; the instance's
// clock is simulated.
func Readers(ctx context.Context, p Place, readers int, lasting time.Duration) (Cost, error) {
	h, err := p.Open(ctx)
	if err != nil {
		return Cost{}, err
	}
	defer h.Close()
	var clock time.Duration
	inst, err := instance.New(instance.Config{Store: h, Name: "regent-test", Alone: true, Now: func() time.Duration { return clock }})
	if err != nil {
		return Cost{}, err
	}
	ask := newAgent("ann").ask("read")
	ask.LeaseDuration = leadership.MaxLeaseDuration
	if _, err := service.New(h).Acquire(ctx, ask); err != nil {
		return Cost{}, err
	}
	h.Take()
	for ; clock < lasting; clock += time.Second {
		for range readers {
			if _, err := inst.Read(ctx, leadership.ReadRequest{Election: "read"}); err != nil {
				return Cost{}, err
			}
		}
	}
	asked, _ := h.Take()
	return asked, nil
}

// readsAnHour is how often an instance reads one election for its cache at most.
const readsAnHour = int(time.Hour / instance.DefaultCacheExpiry)

package proxy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Conditions apply to all connections of a Hop. The zero value passes everything on at once.
type Conditions struct {
	// added in each direction to each piece that is read; order is kept
	Latency time.Duration
	Jitter  time.Duration // 0 to this is added at random
	Seed    uint64        // of the jitter
	// by Way: nothing passes in that direction, not even the end of the connection, and nothing is
	// closed
	Lost     [2]bool
	Refuse   bool // new connections are closed at once with RST; open ones stay
	Rate     int  // bytes a second, each way of each connection; 0 for no limit
	HalfOpen bool // when one side closes or dies, the other does not learn of it
}

// String describes the conditions in a few words, for logs.
func (w Conditions) String() string {
	var words []string
	add := func(on bool, format string, args ...any) {
		if on {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	add(w.Latency > 0 && w.Jitter <= 0, "%v late", w.Latency)
	add(w.Jitter > 0, "%v to %v late", w.Latency, w.Latency+w.Jitter)
	add(w.Lost[Request], "requests lost")
	add(w.Lost[Reply], "replies lost")
	add(w.Refuse, "refusing")
	add(w.Rate > 0, "%d bytes/s", w.Rate)
	add(w.HalfOpen, "half-open")
	if words == nil {
		return "clear"
	}
	return strings.Join(words, ", ")
}

// delay returns how long the piece of that number takes.
func (w Conditions) delay(number uint64) time.Duration {
	if w.Jitter <= 0 {
		return w.Latency
	}
	chance := rand.New(rand.NewPCG(w.Seed, number))
	return w.Latency + time.Duration(chance.Int64N(int64(w.Jitter)+1))
}

// tick is how often data is passed on at a limited rate, if that is at least a byte.
const tick = 50 * time.Millisecond

// step returns how many of n bytes pass at once.
func (w Conditions) step(n int) int {
	if w.Rate <= 0 {
		return n
	}
	return min(n, max(1, w.Rate/int(time.Second/tick)))
}

// pause returns how long n bytes take at the rate.
func (w Conditions) pause(n int) time.Duration {
	if w.Rate <= 0 {
		return 0
	}
	return time.Duration(n) * time.Second / time.Duration(w.Rate)
}

package pubsub

import "time"

// Encode and Decode are how an event travels.
var (
	Encode = encode
	Decode = decode
)

// Backoff is how long Run pauses between its tries.
var Backoff = backoff

// SetHeartbeat changes how often a subscription's heartbeat is renewed.
func (b *Bus) SetHeartbeat(d time.Duration) { b.heartbeat = d }

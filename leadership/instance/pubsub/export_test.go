package pubsub

import "time"

// Encode and Decode convert between events and messages.
var (
	Encode = encode
	Decode = decode
)

// SetHeartbeat changes how often a subscription's heartbeat is renewed.
func (b *Bus) SetHeartbeat(d time.Duration) { b.heartbeat = d }

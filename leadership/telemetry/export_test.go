package telemetry

import "regent/leadership"

// Remembered is how many elections of size are remembered after those events.
func Remembered(size int, events ...leadership.Event) (known, eyed, held, vacant int) {
	es := newElections(size)
	es.hear(events...)
	return len(es.known), len(es.eyed), es.held, es.vacant
}

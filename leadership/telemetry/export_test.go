package telemetry

import "regent/leadership"

// Remembered returns how many of at most size elections are remembered after the events.
func Remembered(size int, events ...leadership.Event) (known, eyed, held, vacant int) {
	es := newElections(size)
	es.hear(events...)
	return es.known.Len(), len(es.eyed), es.held, es.vacant
}

package proxy

import (
	"errors"
	"io"
	"math"
	"slices"
	"time"
)

// lane is one way of a passage: one goroutine reads and one writes.
type lane struct {
	passage  *Passage
	way      Way
	from, to end
	queue    *queue

	// The writer's own, until the passage is done.
	passed, dropped int // bytes
	last            int // bytes that passed last
	at              time.Time
}

// number tells the pieces of a Hop apart by the connection, the way and their order in it.
func (l *lane) number(order uint32) uint64 {
	return l.passage.number<<33 | uint64(l.way)<<32 | uint64(order)
}

// read queues what comes until the sender has ended it.
func (l *lane) read() {
	buffer := make([]byte, maxPiece)
	for order := uint32(0); ; order++ {
		n, err := l.from.Read(buffer)
		if n > 0 {
			l.queue.put(piece{number: l.number(order), came: time.Now(), data: slices.Clone(buffer[:n])})
		}
		if err != nil {
			l.queue.put(piece{number: l.number(order + 1), came: time.Now(), end: err})
			return
		}
	}
}

// write passes on what is queued, the end of it too. Once all is over it drops the rest, so that the reader is never held up for good.
func (l *lane) write() {
	for {
		p := l.queue.take()
		if p.end == nil {
			l.pass(p)
			continue
		}
		if _, ok := l.passage.await(func(w Weather) (time.Time, bool) { return l.due(w, p), l.tells(w) }); !ok {
			return
		}
		if errors.Is(p.end, io.EOF) {
			l.to.CloseWrite()
		} else {
			l.passage.hangUp(true)
		}
		return
	}
}

// pass passes a piece on, by and by if the rate is limited, up to where the passage is to be cut.
func (l *lane) pass(p piece) {
	for data := p.data; len(data) > 0; {
		weather, ok := l.passage.await(func(w Weather) (time.Time, bool) { return l.due(w, p), !w.Lost[l.way] })
		if !ok {
			l.dropped += len(data)
			return
		}
		n := min(weather.step(len(data)), l.room())
		err := l.send(data[:n])
		data = data[n:]
		switch {
		case l.room() == 0:
			l.dropped += len(data)
			l.passage.hangUp(l.passage.cut.Reset)
			return
		case err != nil:
			l.bounce()
		}
	}
}

// due is when a piece is let through. What passed before under a higher rate, or none, counts as one step of this one.
func (l *lane) due(w Weather, p piece) time.Time {
	due := p.came.Add(w.delay(p.number))
	if free := l.at.Add(w.pause(w.step(l.last))); free.After(due) {
		return free
	}
	return due
}

// tells says whether the other side may learn of an end.
func (l *lane) tells(w Weather) bool { return !w.Lost[l.way] && !w.HalfOpen }

// room is how many bytes may pass before the cut.
func (l *lane) room() int {
	if cut := l.passage.cut; cut.Way == l.way && cut.After >= 0 {
		return cut.After - l.passed
	}
	return math.MaxInt
}

// send counts first, so that whoever has received bytes finds them counted.
func (l *lane) send(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	l.passed += len(data)
	l.passage.hop.passed[l.way].Add(int64(len(data)))
	_, err := l.to.Write(data)
	l.last, l.at = len(data), time.Now()
	return err
}

// bounce resets the connection, for the receiver is gone: news that goes the other way, and has to wait for the weather there.
func (l *lane) bounce() {
	back := &l.passage.lanes[1-l.way]
	if _, ok := l.passage.await(func(w Weather) (time.Time, bool) { return time.Time{}, back.tells(w) }); ok {
		l.passage.hangUp(true)
	}
}

package proxy

import (
	"errors"
	"io"
	"math"
	"slices"
	"time"
)

// Limits of the queue of one direction of a connection.
const (
	maxPiece = 16 << 10 // bytes
	maxHeld  = 256      // pieces
)

// piece is the data of one read, or the end of the stream.
type piece struct {
	number uint64 // of all pieces of a Hop, however the goroutines run: see direction.number
	came   time.Time
	data   []byte
	// only in the last piece, which has no data: io.EOF if the sender has closed, else the error
	end error
}

// direction is one direction of a connection: one goroutine reads and one writes.
type direction struct {
	conn     *Connection
	way      Way
	from, to end
	queue    chan piece

	// Used by the writer alone, until the connection is done.
	passed, dropped int // bytes
	last            int // bytes that passed last
	at              time.Time
}

// number identifies a piece of a Hop by its connection, way and order.
func (l *direction) number(order uint32) uint64 {
	return l.conn.number<<33 | uint64(l.way)<<32 | uint64(order)
}

// read queues what arrives until the sender has ended it.
func (l *direction) read() {
	buffer := make([]byte, maxPiece)
	for order := uint32(0); ; order++ {
		n, err := l.from.Read(buffer)
		if n > 0 {
			l.queue <- piece{number: l.number(order), came: time.Now(), data: slices.Clone(buffer[:n])}
		}
		if err != nil {
			l.queue <- piece{number: l.number(order + 1), came: time.Now(), end: err}
			return
		}
	}
}

// write passes on the queued bytes, including the end. Once the connection is over it drops the
// rest, so that the reader is never held up for good.
func (l *direction) write() {
	for p := range l.queue {
		if p.end == nil {
			l.pass(p)
			continue
		}
		if _, ok := l.conn.await(func(w Conditions) (time.Time, bool) { return l.due(w, p), l.tells(w) }); !ok {
			return
		}
		if errors.Is(p.end, io.EOF) {
			l.to.CloseWrite()
		} else {
			l.conn.hangUp(true)
		}
		return
	}
}

// pass passes a piece on, in parts if the rate is limited, up to where the connection is to be cut.
func (l *direction) pass(p piece) {
	for data := p.data; len(data) > 0; {
		conditions, ok := l.conn.await(func(w Conditions) (time.Time, bool) { return l.due(w, p), !w.Lost[l.way] })
		if !ok {
			l.dropped += len(data)
			return
		}
		n := min(conditions.step(len(data)), l.room())
		err := l.send(data[:n])
		data = data[n:]
		switch {
		case l.room() == 0:
			l.dropped += len(data)
			l.conn.hangUp(l.conn.cut.Reset)
			return
		case err != nil:
			l.bounce()
		}
	}
}

// due returns when a piece may pass. Bytes that passed before, at a higher rate or without a limit,
// count as one step of this rate.
func (l *direction) due(w Conditions, p piece) time.Time {
	due := p.came.Add(w.delay(p.number))
	if free := l.at.Add(w.pause(w.step(l.last))); free.After(due) {
		return free
	}
	return due
}

// tells reports whether the other side may learn of the end of the connection.
func (l *direction) tells(w Conditions) bool { return !w.Lost[l.way] && !w.HalfOpen }

// room returns how many bytes may pass before the cut.
func (l *direction) room() int {
	if cut := l.conn.cut; cut.Way == l.way && cut.After >= 0 {
		return cut.After - l.passed
	}
	return math.MaxInt
}

// send counts first, so that a receiver of bytes finds them counted.
func (l *direction) send(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	l.passed += len(data)
	_, err := l.to.Write(data)
	l.last, l.at = len(data), time.Now()
	return err
}

// bounce resets the connection because the receiver is gone. The reset travels in the other
// direction, and waits for the conditions there.
func (l *direction) bounce() {
	back := &l.conn.directions[1-l.way]
	if _, ok := l.conn.await(func(w Conditions) (time.Time, bool) { return time.Time{}, back.tells(w) }); ok {
		l.conn.hangUp(true)
	}
}

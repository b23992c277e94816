//go:build unix

package leash

import (
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"regent/leadership/boottime"
)

// order is what the guard is told: whom to watch, and until when. It travels as it stands here, in one write.
type order struct {
	Parent   int64 // who gives it
	Group    int64
	Deadline int64 // on boottime.Now, in nanoseconds
}

var orderSize = binary.Size(order{})

// stand is the guard: it reads orders from standard input, answers each with a byte on standard output, and ends the group of the last one when
// its deadline has passed, or when nobody is left who could give another.
func stand(mark string, log *slog.Logger) int {
	// Whoever stops a service signals all its processes. The guard stays until its work is done, and nothing but SIGKILL ends it earlier.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE,
		syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU)
	orders, err := newInbox(int(os.Stdin.Fd()))
	if err != nil {
		log.Error("the guard cannot watch", "reason", err)
		return codeNeverBegan
	}
	first, err := orders.next(forever)
	if err != nil {
		return 0 // whoever started this guard went away, or did without it
	}
	g := openGroup(int(first.Group), int(first.Parent), mark)
	why := watch(orders, first)
	g.end(log)
	removeDeadline(mark[strings.IndexByte(mark, '=')+1:])
	log.Error("the guard has killed the command", "reason", why)
	return 0
}

// forever is a moment that does not come.
const forever = time.Duration(1<<63 - 1)

// watch returns when the command has to go, and why.
func watch(orders *inbox, last order) (why string) {
	for {
		os.Stdout.Write([]byte{1})
		next, err := orders.next(time.Duration(last.Deadline))
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return "its deadline has come, and whoever runs it does nothing about it"
		case err != nil:
			return "whoever runs it has died"
		}
		last = next
	}
}

// next waits for an order until the deadline. What was ordered before the deadline is heard also if the guard was stopped meanwhile: the deadline
// has come only when there is nothing more to read. io.EOF says that there is nobody who could write.
func (b *inbox) next(deadline time.Duration) (order, error) {
	for {
		readable, err := b.wait(deadline)
		switch {
		case err != nil:
			return order{}, err
		case readable:
			return b.read()
		case boottime.Now() >= deadline:
			return order{}, os.ErrDeadlineExceeded
		}
	}
}

// read reads one order; an order is written in one piece.
func (b *inbox) read() (order, error) {
	buffer := make([]byte, orderSize)
	for {
		n, err := syscall.Read(b.fd, buffer)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return order{}, err
		case n < orderSize:
			return order{}, io.EOF
		default:
			var o order
			_, err := binary.Decode(buffer, binary.NativeEndian, &o)
			return o, err
		}
	}
}

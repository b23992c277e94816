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

// order tells the guard which group to watch and until when. It is sent in this layout, in one
// write.
type order struct {
	Parent   int64 // PID of the sender
	Group    int64
	Deadline int64 // on boottime.Now, in nanoseconds
}

var orderSize = binary.Size(order{})

// guardMain is the guard process: it reads orders from standard input, answers each with a byte on
// standard output, and kills the group of the last one when its deadline has passed or when the
// pipe is closed.
func guardMain(mark string, log *slog.Logger) int {
	// Stopping a service usually signals all its processes. The guard stays until its work is done;
	// only SIGKILL ends it earlier.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE,
		syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU)
	orders, err := newOrderReader(int(os.Stdin.Fd()))
	if err != nil {
		log.Error("the guard cannot watch", "reason", err)
		return codeNeverBegan
	}
	first, err := orders.next(forever)
	if err != nil {
		return 0 // the caller is gone, or needs no guard
	}
	g := openGroup(int(first.Group), int(first.Parent), mark)
	why := watch(orders, first)
	g.end(log)
	removeDeadline(mark[strings.IndexByte(mark, '=')+1:])
	log.Error("the guard has killed the command", "reason", why)
	return 0
}

// forever is an instant that never comes.
const forever = time.Duration(1<<63 - 1)

// watch returns when the command must go, and why.
func watch(orders *orderReader, last order) (why string) {
	for {
		os.Stdout.Write([]byte{1})
		next, err := orders.next(time.Duration(last.Deadline))
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return "its deadline has passed and regent did not stop it"
		case err != nil:
			return "regent has died"
		}
		last = next
	}
}

// next waits for an order until the deadline. An order that was sent in time counts even if the
// guard was stopped meanwhile: the deadline has come only if there is nothing more to read. io.EOF
// says that the caller is gone.
func (b *orderReader) next(deadline time.Duration) (order, error) {
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

// read reads one order, which was written in one piece.
func (b *orderReader) read() (order, error) {
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

package httpapi

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// arrivals notices when the caller sends something on a connection, or leaves. One goroutine
// watches all connections: one for each would take 5 KiB. The zero value is ready.
type arrivals struct {
	once  sync.Once
	file  *os.File // of the epoll instance; Go's own poller watches it. nil: there is none
	epoll syscall.RawConn

	mu       sync.Mutex // guards the fields below
	last     uint64     // the number of the last call
	awaiting map[uint64]*longCall
}

// open makes the epoll instance.
func (a *arrivals) open() {
	a.awaiting = map[uint64]*longCall{}
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return
	}
	syscall.SetNonblock(fd, true) // so that a goroutine can wait for it, and takes no thread
	a.file = os.NewFile(uintptr(fd), "epoll")
	if a.epoll, err = a.file.SyscallConn(); err == nil && a.file.SetReadDeadline(time.Time{}) == nil {
		go a.run()
	} else {
		a.file.Close()
		a.file = nil
	}
}

// close ends the watching.
func (a *arrivals) close() {
	if a.once.Do(func() {}); a.file != nil {
		a.file.Close()
	}
}

// await calls c.came once, with what was read, unless forget is called before. It reports whether
// the connection can be watched.
func (a *arrivals) await(c *longCall) bool {
	conn, ok := c.conn.(syscall.Conn)
	if a.once.Do(a.open); a.file == nil || !ok {
		return false
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	a.mu.Lock()
	a.last++
	number := a.last
	c.number = number
	a.awaiting[number] = c
	a.mu.Unlock()
	if a.watch(raw, number) != nil {
		a.forget(c)
		return false
	}
	return true
}

// watch lets the kernel tell of the next thing that arrives.
func (a *arrivals) watch(conn syscall.RawConn, number uint64) error {
	event := syscall.EpollEvent{Events: syscall.EPOLLIN | syscall.EPOLLRDHUP | syscall.EPOLLONESHOT, Fd: int32(number), Pad: int32(number >> 32)}
	var failed error
	err := conn.Control(func(fd uintptr) {
		err := a.epoll.Control(func(epoll uintptr) {
			failed = syscall.EpollCtl(int(epoll), syscall.EPOLL_CTL_ADD, int(fd), &event)
			if failed == syscall.EEXIST { // it was watched before
				failed = syscall.EpollCtl(int(epoll), syscall.EPOLL_CTL_MOD, int(fd), &event)
			}
		})
		if err != nil {
			failed = err
		}
	})
	if err != nil {
		return err
	}
	return failed
}

// forget is for a connection that is closed.
func (a *arrivals) forget(c *longCall) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.awaiting, c.number)
}

// run notices what arrives until close is called.
func (a *arrivals) run() {
	events := make([]syscall.EpollEvent, 128)
	for {
		n := 0
		err := a.epoll.Read(func(fd uintptr) bool {
			n, _ = syscall.EpollWait(int(fd), events, 0)
			return n != 0
		})
		if err != nil {
			return
		}
		for _, e := range events[:max(n, 0)] { // -1 after a signal
			a.arrived(uint64(uint32(e.Fd)) | uint64(uint32(e.Pad))<<32)
		}
	}
}

// arrived reads what has arrived. It does not block.
func (a *arrivals) arrived(number uint64) {
	a.mu.Lock()
	c := a.awaiting[number]
	a.mu.Unlock()
	if c == nil {
		return
	}
	read, err := readNow(c.conn)
	if err == syscall.EAGAIN && a.again(c.conn, number) {
		return
	}
	a.forget(c)
	c.came(read, err)
}

// again goes on watching a connection on which nothing had arrived. It reports whether it can.
func (a *arrivals) again(c net.Conn, number uint64) bool {
	raw, err := c.(syscall.Conn).SyscallConn()
	return err == nil && a.watch(raw, number) == nil
}

// readNow reads a byte, if there is one.
func readNow(c net.Conn) (read []byte, err error) {
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		return nil, err
	}
	var b [1]byte
	n := 0
	closed := raw.Read(func(fd uintptr) bool {
		for {
			if n, err = syscall.Read(int(fd), b[:]); err != syscall.EINTR {
				return true
			}
		}
	})
	switch {
	case closed != nil:
		return nil, closed
	case err == nil && n == 0:
		return nil, io.EOF
	case err != nil:
		return nil, err
	}
	return b[:], nil
}

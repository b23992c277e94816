package faults

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync"
)

// link is the only way out of a network namespace: a pair of interfaces, of which the near one is
// here. It ends with the processes in the namespace, or with close.
type link struct {
	near, far         string // interfaces
	nearHost, farHost string // their addresses

	gates   []net.Listener
	passing sync.WaitGroup
}

// newLink returns a link whose far end is in no namespace yet. Its addresses are reserved for tests
// (RFC 2544).
func newLink() (*link, error) {
	n := rand.N(1 << 14)
	l := &link{
		near: fmt.Sprintf("rf%dn", n), far: fmt.Sprintf("rf%df", n),
		nearHost: fmt.Sprintf("198.18.%d.%d", n>>6, n&63<<2+1), farHost: fmt.Sprintf("198.18.%d.%d", n>>6, n&63<<2+2),
	}
	return l, errors.Join(
		command("ip", "link", "add", l.near, "type", "veth", "peer", "name", l.far),
		command("ip", "addr", "add", l.nearHost+"/30", "dev", l.near),
		command("ip", "link", "set", l.near, "up"),
	)
}

// gate returns an address on the near end that leads to host:port here.
func (l *link) gate(target string) (string, error) {
	listener, err := net.Listen("tcp", l.nearHost+":0")
	if err != nil {
		return "", err
	}
	l.gates = append(l.gates, listener)
	l.passing.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			go pass(in, target) // ends with the namespace at the latest
		}
	})
	return listener.Addr().String(), nil
}

// pass carries a connection both ways until one side has ended it.
func pass(in net.Conn, target string) {
	defer in.Close()
	out, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer out.Close()
	ended := make(chan struct{}, 2)
	carry := func(to, from net.Conn) {
		io.Copy(to, from)
		ended <- struct{}{}
	}
	go carry(in, out)
	go carry(out, in)
	<-ended
}

// lead moves the far end into the network namespace of a process.
func (l *link) lead(pid int) error {
	inside := func(args ...string) error {
		return command("nsenter", append([]string{"-t", strconv.Itoa(pid), "-n", "ip"}, args...)...)
	}
	return errors.Join(
		command("ip", "link", "set", l.far, "netns", strconv.Itoa(pid)),
		inside("link", "set", "lo", "up"),
		inside("addr", "add", l.farHost+"/30", "dev", l.far),
		inside("link", "set", l.far, "up"),
	)
}

func (l *link) cut() error  { return command("ip", "link", "set", l.near, "down") }
func (l *link) heal() error { return command("ip", "link", "set", l.near, "up") }

func (l *link) close() {
	for _, g := range l.gates {
		g.Close()
	}
	l.passing.Wait()
	command("ip", "link", "del", l.near) // it may be gone already
}

func command(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

package process

import (
	"math/rand/v2"
	"net"
	"strconv"
)

// Address returns an address on loopback for a server that is started later, and perhaps more than
// once. Its port was free, and lies below those of which the system takes one for a connection or
// for port 0 (from 32768 on; see ip_local_port_range in Linux's ip-sysctl), so that no other
// process is given it in between.
func Address() (string, error) {
	const first, beyond = 10_000, 32_768
	var err error
	for range 100 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(first+rand.IntN(beyond-first)))
		var l net.Listener
		if l, err = net.Listen("tcp", address); err == nil {
			return address, l.Close()
		}
	}
	return "", err
}

package pubsub

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"regent/leadership/internal/form"
)

// ParseEndpoint checks the address of an endpoint, HOST:PORT, such as
// europe-west4-pubsub.googleapis.com:443. The error is a sentence that names the mistake.
func ParseEndpoint(address string) error {
	host, port, err := net.SplitHostPort(address)
	n, bad := strconv.ParseUint(port, 10, 16)
	if err != nil || bad != nil || n == 0 || !isHost(host) {
		return fmt.Errorf("an endpoint is HOST:PORT, such as europe-west4-pubsub.googleapis.com:443, not %s", form.Shown(address))
	}
	return nil
}

// isHost reports whether a name of a host, or an address, can be so written.
func isHost(s string) bool {
	if net.ParseIP(s) != nil {
		return true
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" ||
			strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") {
			return false
		}
	}
	return true
}

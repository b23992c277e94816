package httpapi

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"

	"regent/leadership/wire"
)

// A browser sends the requests of any page that it shows, also to this machine. The page may come
// from another site, or from a site whose name now resolves to this machine (DNS rebinding).
// Programs are not affected: they send neither Origin nor Sec-Fetch-Site.

// keepPagesOut refuses a call from a page of another origin. It also refuses reads: the page could
// not see the answer, but a stream or a long poll would take a place. At a door it allows following
// a link from another page, because a door may serve a page.
func (a *api) keepPagesOut(r *http.Request, door bool) error {
	if a.hosts != nil && !a.hosts(r.Host) {
		return refuse(wire.PermissionDenied, "this server has no access control and answers under IP addresses and localhost only, not under %s; call it at http://127.0.0.1, or start it with --allow-host and that name", wire.Quote(r.Host))
	}
	if r.Header["Origin"] == nil && r.Header["Sec-Fetch-Site"] == nil || !door && !strings.HasPrefix(r.URL.Path, wire.PathGuarded) {
		return nil
	}
	if door && r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" {
		return nil
	}
	changing := *r
	changing.Method = http.MethodPost // http.CrossOriginProtection allows all reads
	if a.origins.Check(&changing) != nil {
		return refuse(wire.PermissionDenied, "a page of another origin makes this request in a browser, and only programs and pages of this server's own origin may call; let the page ask a service of its own, which calls Regent")
	}
	return nil
}

// LocalHosts returns a function for Config.Hosts that allows IP addresses, localhost and the names.
// A page that uses DNS rebinding reaches none of them, because its requests name its own host.
func LocalHosts(names ...string) func(host string) bool {
	var last atomic.Pointer[string] // the last allowed host: most callers name the same one
	return func(host string) bool {
		if known := last.Load(); known != nil && *known == host {
			return true
		}
		if !localHost(host, names) {
			return false
		}
		known := strings.Clone(host)
		last.Store(&known)
		return true
	}
}

func localHost(host string, names []string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return !ip.Unmap().IsUnspecified() // 0.0.0.0 is this machine too, and browsers send no marks with requests to it
	}
	matches := func(name string) bool { return strings.EqualFold(host, name) }
	return host == "" || matches("localhost") || slices.ContainsFunc(names, matches) // a browser always sends a host
}

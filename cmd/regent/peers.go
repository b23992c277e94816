package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/service"
	"regent/leadership/wire"
)

// peerTimeout is how long a peer may take to say whether a lease is held, and so the longest that a
// renewal waits for it.
const peerTimeout = 2 * time.Second

// named collects NAME=VALUE settings: a flag may be given several times, each time with several
// settings, comma-separated.
type named struct {
	to   *map[string]string
	kind string // placeholder in the help
}

func (n named) String() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(*n.to)) {
		all = append(all, name+"="+(*n.to)[name])
	}
	return strings.Join(all, ",")
}

func (n named) Type() string { return n.kind }

func (n named) Set(text string) error {
	parts, err := parseTexts(text)
	if err != nil {
		return err
	}
	for _, part := range parts {
		name, value, found := strings.Cut(part, "=")
		switch {
		case !found, value == "", len(name) > leadership.MaxPeerLength, leadership.CandidateID(name).Validate() != nil:
			return fmt.Errorf("%q is not %s, with a name of 1 to %d of A-Z, a-z, 0-9 and \"._@:-\"", part, n.kind, leadership.MaxPeerLength)
		case (*n.to)[name] != "":
			return fmt.Errorf("%s is named twice; give each peer a name of its own", name)
		case *n.to == nil:
			*n.to = map[string]string{}
		}
		(*n.to)[name] = value
	}
	return nil
}

// peerSettings are other Regent services whose leases candidates of this one may name.
type peerSettings struct {
	urls      map[string]string // by name
	audiences map[string]string // of ID tokens from the metadata server
	files     map[string]string // with an ID token
}

func (s *peerSettings) addTo(c *cli, cmd *cobra.Command) {
	cmd.Flags().Var(named{&s.urls, "NAME=URL"}, "peer", "another service, whose leases candidates here may name; may be given several times, https:// unless it is on this machine")
	cmd.Flags().Var(named{&s.audiences, "NAME=AUDIENCE"}, "peer-audience", "identify this service to that peer by an ID token for this audience from Google Cloud's metadata server")
	cmd.Flags().Var(named{&s.files, "NAME=FILE"}, "peer-id-token-file", "identify this service to that peer by the ID token in this file, which is read for each request")
	for _, flag := range []string{"peer", "peer-audience", "peer-id-token-file"} {
		c.source(cmd, source{flag: flag, variable: variableOf(flag) + "S"})
	}
}

func (s peerSettings) check() error {
	_, err := s.peers()
	return err
}

// peers returns the peers of the settings for the service, or nil.
func (s peerSettings) peers() (service.Peers, error) {
	for flag, of := range map[string]map[string]string{"--peer-audience": s.audiences, "--peer-id-token-file": s.files} {
		for name := range of {
			if s.urls[name] == "" {
				return nil, usagef("%s names %s, which is no peer; give --peer %s=URL, too", flag, name, name)
			}
		}
	}
	if len(s.urls) == 0 {
		return nil, nil
	}
	all := peers{}
	for _, name := range slices.Sorted(maps.Keys(s.urls)) {
		if s.audiences[name] != "" && s.files[name] != "" {
			return nil, usagef("peer %s: give --peer-audience or --peer-id-token-file, not both", name)
		}
		server, err := client.New(client.Config{
			Server: s.urls[name], HTTP: &http.Client{Timeout: peerTimeout},
			Credential: bearerFlags{audience: s.audiences[name], file: s.files[name]}.credential(),
		})
		switch {
		case errors.Is(err, client.ErrPlainHTTP):
			return nil, usagef("--peer %s: %w; use https:// (SSL_CERT_FILE names the certificates of an authority of your own)", name, client.ErrPlainHTTP)
		case err != nil:
			return nil, usagef("--peer %s: %w", name, errors.Unwrap(err))
		}
		all[name] = server
	}
	return all, nil
}

type peers map[string]*client.Client

// Check implements service.Peers. If the peer does not answer this question, the error is
// StoreUnavailable: the caller may ask again.
func (p peers) Check(ctx context.Context, peer string, c leadership.TokenCheck) (leadership.Lease, error) {
	server, known := p[peer]
	if !known {
		return leadership.Lease{}, &leadership.Error{Code: leadership.InvalidArgument, Field: "via.peer", Detail: fmt.Sprintf(
			"this service has no peer %s; its operator names peers with regent serve --peer NAME=URL", wire.Quote(peer))}
	}
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	l, err := server.CheckToken(ctx, c)
	if err == nil || errors.Is(err, leadership.TokenStale) || errors.Is(err, leadership.NotFound) {
		return l, err
	}
	return leadership.Lease{}, fmt.Errorf("peer %s: %v: %w", peer, err, &leadership.Error{Code: leadership.StoreUnavailable, Detail: fmt.Sprintf(
		"peer %s %s, so it is not known whether election %q is led there with fencing token %d; try again until your own deadline", peer, silence(err), c.Election, c.Token)})
}

// silence returns why a peer does not answer. The text contains no address.
func silence(err error) string {
	var code leadership.Code
	if errors.As(err, &code) && code != leadership.StoreUnavailable {
		return "answers " + string(code)
	}
	return "does not answer"
}

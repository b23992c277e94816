package main

import (
	"cmp"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"regent/httpapi"
	"regent/leadership"
	"regent/leadership/instance/pubsub"
	"regent/leadership/statement"
	"regent/store"
)

// serviceSettings are the settings of serve. Before resolve, an empty string means that a setting
// was not given.
type serviceSettings struct {
	listen string // HOST:PORT
	store  string // see store.Open
	events string // see pubsub.ParseTopic, or noEvents
	// members is the topic over which instances tell each other of members; see pubsub.ParseTopic,
	// or noMembers.
	members string
	dev     bool
	// eventsEndpoint is the Pub/Sub endpoint for publishing events; see pubsub.ParseEndpoint. ""
	// means the nearest region.
	eventsEndpoint string
	access         accessSettings
	peers          peerSettings

	certificate certificateSettings
	hosts       []string // names under which the service is called, without access control

	metricsListen string                // HOST:PORT; "" for none
	named         []leadership.Election // the elections that metrics show by name
	kubernetes    bool                  // also serve Leases as a Kubernetes API server does
	ui            bool                  // also serve the dashboard
	mcp           bool                  // also serve tools for language models
	statementKeys []string              // files, and versions of Cloud KMS after kmsPrefix; the first signs

	history     time.Duration // see store.Config
	cacheExpiry time.Duration // see instance.Config
	streamLimit time.Duration // see httpapi.Config
	// maxConcurrency is the number of requests that the platform sends at a time; 0 means no limit.
	maxConcurrency int
}

// noEvents means that events stay in their process.
const noEvents = "none"

// noMembers means that each instance knows only its own members.
const noMembers = "none"

const defaultListen = "127.0.0.1:8080"

// resolve fills in defaults and refuses settings with surprising effects.
func (s serviceSettings) resolve(env map[string]string) (serviceSettings, error) {
	err := cmp.Or(
		s.resolveListen(env), s.refuseEmulators(env), s.access.resolve(env, isExposed(s.listen)),
		errors.Join(s.checkMetrics(), s.checkHosts(), s.certificate.check()),
		s.resolveEvents(), s.resolveMembers(), s.peers.check(), s.resolveStore(env),
	)
	if err != nil {
		return s, err
	}
	if err := store.Validate(s.store); err != nil {
		return s, storeError{s.store, err}
	}
	return s, nil
}

func (s *serviceSettings) resolveEvents() error {
	s.events = cmp.Or(s.events, noEvents)
	if err := checkEndpoint(s.eventsEndpoint, s.events); err != nil || s.events == noEvents {
		return err
	}
	if _, _, err := pubsub.ParseTopic(s.events); err != nil {
		return usagef("--events %s: %w; or give %s, and events stay in this process", s.events, err, noEvents)
	}
	return nil
}

// resolveMembers resolves the topic of members. It must differ from the topic of events, whose
// subscribers expect only events.
func (s *serviceSettings) resolveMembers() error {
	s.members = cmp.Or(s.members, noMembers)
	if s.members == noMembers {
		return nil
	}
	if _, _, err := pubsub.ParseTopic(s.members); err != nil {
		return usagef("--members %s: %w; or give %s, and each instance knows only the members that call it", s.members, err, noMembers)
	}
	if s.members == s.events {
		return usagef("--members and --events name the same topic, %s; give each its own, because their messages differ", s.members)
	}
	return nil
}

func checkEndpoint(endpoint, events string) error {
	if endpoint == "" {
		return nil
	}
	if events == noEvents {
		return usagef("--events-endpoint %s says how to publish, and there is no topic; give --events TOPIC too, or leave it out", endpoint)
	}
	if err := pubsub.ParseEndpoint(endpoint); err != nil {
		return usagef("--events-endpoint: %w; leave it out unless instances run in several regions", err)
	}
	return nil
}

func (s serviceSettings) checkMetrics() error {
	if s.metricsListen == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(s.metricsListen)
	if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil {
		return usagef("--metrics-listen %q is not HOST:PORT; write it as 127.0.0.1:9090, or leave it out", s.metricsListen)
	}
	if s.dev && s.metricsExposed() {
		return usagef("--dev serves this machine only, and %s can be reached from others; give --metrics-listen 127.0.0.1:9090, or leave --dev out", s.metricsListen)
	}
	return nil
}

func (s serviceSettings) checkHosts() error {
	if len(s.hosts) > 0 && s.access.auth != authNone {
		return usagef("--allow-host has no effect with --auth %s, which answers under any name; leave it out", s.access.auth)
	}
	for _, name := range s.hosts {
		if strings.ContainsAny(name, "/:*@ ") {
			return usagef("--allow-host %q is not the name of a host; write it as regent or regent.example.com, without a port", name)
		}
	}
	return nil
}

// answers returns the function that reports under which hosts the service answers; nil for all.
// Where callers are authenticated, a page that reaches the service has no token to show.
func (s serviceSettings) answers() func(host string) bool {
	if s.access.auth != authNone {
		return nil
	}
	return httpapi.LocalHosts(s.hosts...)
}

func (s serviceSettings) metricsExposed() bool { return isExposed(s.metricsListen) }

func isExposed(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err != nil || !statement.IsLoopback(host)
}

// local reports whether the store belongs to this process alone.
func (s serviceSettings) local() bool {
	return strings.HasPrefix(s.store, "memory:") || strings.HasPrefix(s.store, "file:")
}

// resolveListen resolves the address. Cloud Run sets PORT, and calls from outside the container.
func (s *serviceSettings) resolveListen(env map[string]string) error {
	if port := env["PORT"]; s.listen == "" && port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return usagef("PORT=%q is not a port from 1 to 65535; correct it, or give --listen HOST:PORT", port)
		}
		s.listen = "0.0.0.0:" + port
	}
	s.listen = cmp.Or(s.listen, defaultListen)
	host, port, err := net.SplitHostPort(s.listen)
	if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil {
		return usagef("--listen %q is not HOST:PORT; write it as %s, or [::1]:8080, with a port from 0 (any) to 65535", s.listen, defaultListen)
	}
	if s.dev && !statement.IsLoopback(host) {
		return usagef("--dev serves this machine only, and %s can be reached from others; give --listen %s, or leave --dev out", s.listen, defaultListen)
	}
	return nil
}

const emulatorSuffix = "_EMULATOR_HOST"

// refuseEmulators keeps a real service from writing its leases to an emulator. Google's libraries
// do that silently if such a variable is set.
func (s serviceSettings) refuseEmulators(env map[string]string) error {
	if s.dev {
		return nil
	}
	var set []string
	for name, value := range env {
		if strings.HasSuffix(name, emulatorSuffix) && value != "" {
			set = append(set, name)
		}
	}
	if len(set) == 0 {
		return nil
	}
	slices.Sort(set)
	return usagef("%s is set, and an emulator forgets every lease; unset it, or give --dev to use the emulator", strings.Join(set, ", "))
}

// resolveStore resolves the store. Without a permanent disk there is no default.
func (s *serviceSettings) resolveStore(env map[string]string) error {
	if strings.HasPrefix(s.store, "file:~") {
		return usagef("--store %s: the shell expands ~ only at the beginning of a word; write the folder in full, as in file:$HOME/leases", s.store)
	}
	if s.store != "" {
		return nil
	}
	if env["K_SERVICE"] != "" {
		return usagef("on Cloud Run a local folder is lost with its instance; give --store (or REGENT_STORE), such as firestore:PROJECT")
	}
	path, err := statePath(env)
	if err != nil {
		return err
	}
	s.store = "file:" + path
	return nil
}

// statePath follows the XDG base directory specification: a relative XDG_STATE_HOME is ignored.
func statePath(env map[string]string) (string, error) {
	folder := env["XDG_STATE_HOME"]
	if !filepath.IsAbs(folder) {
		home := env["HOME"]
		if !filepath.IsAbs(home) {
			return "", usagef("there is no home folder for the leases; give --store file:PATH")
		}
		folder = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(folder, "regent", "leases"), nil
}

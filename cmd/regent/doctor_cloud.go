package main

import (
	"cmp"
	"context"
	"net"
	"net/url"
	"slices"
	"strings"

	"regent/cmd/regent/internal/cloud"
	"regent/leadership/instance/pubsub"
	"regent/store"
)

type doctorSettings struct {
	store    string // see store.Open
	events   string // see pubsub.ParseTopic, or noEvents
	endpoint string // that instances publish through; "" for Google's choice
	members  string // see serviceSettings
	services []string
	auth     string // of the services
	access   string // an access file for them; "" for none
	peers    peerSettings
}

// countsApart reports whether several instances may serve while each counts only its own members.
func (s doctorSettings) countsApart() bool {
	return s.events != noEvents && s.members == noMembers && !serviceSettings{store: s.store}.local()
}

func (s doctorSettings) validate() error {
	topics := serviceSettings{events: s.events, members: s.members}
	if err := cmp.Or(store.Validate(s.store), topics.resolveMembers(), checkEndpoint(s.endpoint, s.events), s.peers.check()); err != nil {
		return err
	}
	here := !slices.ContainsFunc(s.services, func(service string) bool { return !isLocal(service) })
	if s.auth != authPlatform && s.auth != authOIDC && (s.auth != authNone || !here) {
		return usagef("--auth %q is not %s or %s, which a service needs that other machines can reach; say which --service has", s.auth, authPlatform, authOIDC)
	}
	for _, service := range s.services {
		if !cloud.IsService(service) && !isAddress(service) {
			return usagef("--service %q is not projects/P/locations/L/services/S, and not https://HOST", service)
		}
	}
	return nil
}

// isAddress reports whether text is the URL of a server, with TLS unless it is on this machine.
func isAddress(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || strings.Trim(u.Path, "/") != "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && ip != nil && ip.IsLoopback()
}

// firestoreOf returns the project and the database of a store in Firestore.
func firestoreOf(spec string) (project, database string, is bool) {
	rest, is := strings.CutPrefix(spec, "firestore:")
	project, database, named := strings.Cut(rest, "/")
	if !named {
		database = "(default)"
	}
	return project, database, is
}

// readDetail returns the detail for a successful read of the store. An emulator ignores headers, so
// a read from it proves nothing about them.
func readDetail(spec string, env map[string]string) string {
	if _, database, is := firestoreOf(spec); is && env[firestoreEmulator] == "" {
		return "database " + database + " accepts the headers of this client"
	}
	return ""
}

// examineProject checks what only Google Cloud has. On an emulator it reports the differences
// instead.
func (x *doctorReport) examineProject(ctx context.Context, s doctorSettings, project *cloud.Client, env map[string]string) {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	id, database, onFirestore := firestoreOf(s.store)
	if onFirestore && env[firestoreEmulator] == "" {
		x.add(project.Firestore(ctx, id, database)...)
	}
	if _, _, none := pubsub.ParseTopic(s.events); none == nil && env[pubsubEmulator] == "" {
		x.add(project.Topic(ctx, s.events, s.endpoint))
	}
	if _, _, none := pubsub.ParseTopic(s.members); none == nil && env[pubsubEmulator] == "" {
		x.add(project.Members(ctx, s.members)...)
	}
	for _, service := range s.services {
		switch {
		case cloud.IsService(service):
			x.add(project.Service(ctx, service, s.auth == authOIDC)...)
		case isLocal(service) && s.withoutCloud(env):
			x.examineLocal(ctx, service)
		default:
			x.add(project.Uninvited(ctx, service, s.auth == authOIDC))
		}
	}
	x.addDifferences(s, env)
}

func (x *doctorReport) add(found ...cloud.Finding) {
	for _, f := range found {
		if f.Verdict == cloud.NotOK {
			x.failed++
		}
		x.rows = append(x.rows, []string{f.Check, string(f.Verdict), "", f.Text})
	}
}

package main

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"regent/cmd/regent/internal/cloud"
	"regent/leadership/instance/pubsub"
)

// The parts of a setting without the cloud.
const (
	firestoreEmulator = "FIRESTORE_EMULATOR_HOST"
	spannerEmulator   = "SPANNER_EMULATOR_HOST"
	pubsubEmulator    = "PUBSUB_EMULATOR_HOST"
	localService      = "" // a service at http://127.0.0.1, beside an emulator
)

// differences lists what Google Cloud does differently from an emulator. A row is shown if its part
// is used.
var differences = []struct{ part, check, text string }{
	{firestoreEmulator, "Firestore: indexes", "the emulator answers every query; Firestore needs the indexes and the exemptions that Terraform makes"},
	{firestoreEmulator, "Firestore: TTL", "the emulator deletes nothing; Firestore deletes events and trimmed entries about a day after they are due, by the TTL policies that Terraform makes"},
	{firestoreEmulator, "Firestore: IAM", "any program that reaches the emulator may read and change everything; Firestore lets in the service account of Regent"},
	{firestoreEmulator, "Firestore: regions", "the emulator is one process, and the leases are gone with it; Firestore survives the loss of a zone or, with a multi-region location, of a region"},
	{firestoreEmulator, "Firestore: clocks", "the emulator has one clock; Firestore's servers have many, for which Regent keeps 50 ms between two leases"},
	{firestoreEmulator, "Firestore: contention", "the emulator gives a lock up after 2 s and limits no rate; Firestore slows down what is written often, so renew no lease more often than every 2 s"},
	{firestoreEmulator, "Firestore: latency", "the times above are those of this machine; run doctor on Google Cloud for those of Firestore"},
	{spannerEmulator, "Spanner: contention", "the emulator runs one read-write transaction of a database at a time, and aborts others; Spanner runs those on other elections side by side"},
	{spannerEmulator, "Spanner: TTL", "the emulator accepts the row deletion policy and deletes nothing; Spanner deletes events, usually within 72 hours after they are due"},
	{spannerEmulator, "Spanner: IAM", "any program that reaches the emulator may read and change everything; Spanner lets in the service account of Regent"},
	{spannerEmulator, "Spanner: regions", "the emulator is one process, and the leases are gone with it; Spanner survives the loss of a zone or, with a multi-region configuration, of a region"},
	{spannerEmulator, "Spanner: clocks", "the emulator has one clock; Spanner waits at each commit for the uncertainty of its own"},
	{spannerEmulator, "Spanner: limits", "the emulator holds to no limits and to no deadlines of calls, and accepts SQL that Spanner refuses"},
	{spannerEmulator, "Spanner: latency", "the times above are those of this machine; run doctor on Google Cloud for those of Spanner"},
	{pubsubEmulator, "Pub/Sub: order", "the emulator is one region; Pub/Sub orders only what is published in one region, so instances in several need --events-endpoint"},
	{pubsubEmulator, "Pub/Sub: filters", "the emulator accepts the filter of a subscription and delivers everything; Pub/Sub applies it"},
	{pubsubEmulator, "Pub/Sub: push", "the emulator pushes without an Authorization header; Pub/Sub signs with the service account that the subscription names"},
	{pubsubEmulator, "Pub/Sub: IAM", "any program that reaches the emulator may publish and subscribe; on Pub/Sub whoever may publish to the topic of members can pretend to be an instance"},
	{pubsubEmulator, "Pub/Sub: messages", "the emulator is one process, and messages and subscriptions are gone with it; Pub/Sub keeps messages until they are acknowledged or too old"},
	{localService, "service: callers", "every program on this machine may call, and none is identified; on Cloud Run IAM admits callers, and --access says what they may do"},
	{localService, "service: TLS", "keys and credentials travel in the clear, which only this machine can read; Cloud Run serves https:// alone"},
	{localService, "service: life", "an instance runs until it is stopped; Cloud Run starts and stops instances as it likes (SIGKILL 10 s after SIGTERM), and ends long requests"},
}

// emulator returns the address of the emulator that the variable names, or "" if the setting does
// not use it.
func (s doctorSettings) emulator(variable string, env map[string]string) string {
	_, _, noEvents := pubsub.ParseTopic(s.events)
	_, _, noMembers := pubsub.ParseTopic(s.members)
	used := map[string]bool{
		firestoreEmulator: kindOf(s.store) == "firestore",
		spannerEmulator:   kindOf(s.store) == "spanner",
		pubsubEmulator:    noEvents == nil || noMembers == nil,
	}
	if !used[variable] {
		return ""
	}
	return env[variable]
}

// withoutCloud reports whether the setting uses an emulator.
func (s doctorSettings) withoutCloud(env map[string]string) bool {
	variables := []string{firestoreEmulator, spannerEmulator, pubsubEmulator}
	return slices.ContainsFunc(variables, func(variable string) bool { return s.emulator(variable, env) != "" })
}

func (x *doctorReport) addDifferences(s doctorSettings, env map[string]string) {
	for _, d := range differences {
		applies := s.emulator(d.part, env) != ""
		if d.part == localService {
			applies = s.withoutCloud(env) && slices.ContainsFunc(s.services, isLocal)
		}
		if applies {
			x.add(cloud.Finding{Check: d.check, Verdict: cloud.Differs, Text: d.text})
		}
	}
}

// isLocal reports whether a service is at an address of this machine, without TLS; see isAddress.
func isLocal(service string) bool { return strings.HasPrefix(service, "http://") }

// examineLocal checks whether a service on this machine is ready.
func (x *doctorReport) examineLocal(ctx context.Context, service string) {
	x.check(ctx, "service "+strings.TrimPrefix(strings.TrimSuffix(service, "/"), "http://"), 1, func(ctx context.Context) (string, error) {
		address, err := url.JoinPath(service, "/health/ready")
		if err != nil {
			return "", err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return "", err
		}
		resp, err := (&http.Client{Transport: &http.Transport{}}).Do(req) // without a proxy
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return "", errors.New("it is not ready: " + address + " answers " + resp.Status)
		}
		return "it is ready", nil
	})
}

// entries are headings and ids of TROUBLESHOOTING.md, each with a pattern of its failures, "CHECK:
// TEXT". The first that matches counts; the last matches all. "" is no entry.
var entries = []struct {
	anchor string
	about  *regexp.Regexp
}{
	{"", regexp.MustCompile(`^(verify the folder|open the store): .*(INVALID_ARGUMENT: |there is no folder|chmod 700|name a new folder|read-only file system)`)}, // it says all
	{"in-use", regexp.MustCompile(`in use by another process`)},
	{"moved", regexp.MustCompile(`the elections of this store were moved to`)},
	{"clock", regexp.MustCompile(`^clock: `)},
	{"access-file", regexp.MustCompile(`^access file: `)},
	{"unverified-callers", regexp.MustCompile(`^(invokers|call without a credential): |IAM does not check`)},
	{"unreachable", regexp.MustCompile(`^(service|peer) `)},
	{"read-only", regexp.MustCompile(`^[^:]*members|^delete that subscription: `)},
	{"unannounced-events", regexp.MustCompile(`^(open the topic|subscribe|publish|hear|delete the subscription|order across regions): `)},
	{"emulator", regexp.MustCompile(`127\.0\.0\.1:\d+: connect: connection refused`)},
	{"errors", regexp.MustCompile(``)},
}

// addEntries adds to each failed check a link to its entry.
func (x *doctorReport) addEntries() {
	for _, row := range x.rows {
		if row[1] != string(cloud.NotOK) {
			continue
		}
		for _, e := range entries {
			if !e.about.MatchString(row[0] + ": " + row[3]) {
				continue
			}
			if e.anchor != "" {
				row[3] += "; see cmd/regent/TROUBLESHOOTING.md#" + e.anchor
			}
			break
		}
	}
}

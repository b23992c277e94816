package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"regent/cmd/regent/internal/cloud"
	"regent/leadership"
	"regent/store/memory"
)

func TestDoctorLooksAtAProject(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{}`) // no index, no TTL policy, any region, no rights, and no callers
	}))
	t.Cleanup(s.Close)
	settings := doctorSettings{
		store: "firestore:p/regent", events: "projects/p/topics/regent", auth: authPlatform,
		services: []string{"projects/p/locations/l/services/regent", s.URL}, members: "projects/p/topics/members",
	}
	x := &doctorReport{}
	x.examineProject(t.Context(), settings, &cloud.Client{HTTP: s.Client(), Base: s.URL}, nil)
	var got []string
	for _, row := range x.rows {
		got = append(got, row[0]+": "+row[1])
	}
	want := `field events.unannounced: FAILED
field events.requestedAt: FAILED
field events.deleteAfter: FAILED
field segments.deleteAfter: FAILED
field leadership.leaderId: FAILED
field leadership.retireAt: FAILED
field leadership.renewalDue: ok
order across regions: not checked
rights on the topic of members: FAILED
retention of members: ok
expiry of members' subscriptions: ok
service regent: ok
invokers: ok
call without a token: FAILED`
	if strings.Join(got, "\n") != want || x.failed != 8 {
		t.Errorf("%d failed:\n%s\nwant\n%s", x.failed, strings.Join(got, "\n"), want)
	}
}

func TestDoctorLooksAtNoProjectOfAnEmulator(t *testing.T) {
	t.Parallel()
	x := &doctorReport{}
	env := map[string]string{"FIRESTORE_EMULATOR_HOST": "localhost:1", "PUBSUB_EMULATOR_HOST": "localhost:2"}
	x.examineProject(t.Context(), doctorSettings{store: "firestore:p", events: "projects/p/topics/regent", members: "projects/p/topics/members"}, &cloud.Client{Base: "http://127.0.0.1:1"}, env)
	if len(x.rows) == 0 || x.failed != 0 || slices.ContainsFunc(x.rows, func(row []string) bool { return row[1] != string(cloud.Differs) }) {
		t.Errorf("%q; want lines that say so alone", x.rows)
	}
}

func TestDoctorWarnsOfAQuorumWhoseMembersAreCountedApart(t *testing.T) {
	t.Parallel()
	apart := doctorSettings{store: "firestore:p", events: "projects/p/topics/regent", members: noMembers}
	for name, c := range map[string]struct {
		change func(*doctorSettings)
		apart  bool
	}{
		"several instances, and no topic of members": {func(*doctorSettings) {}, true},
		"a topic of members":                         {func(s *doctorSettings) { s.members = "projects/p/topics/members" }, false},
		"one instance":                               {func(s *doctorSettings) { s.events = noEvents }, false},
		"a store of one process":                     {func(s *doctorSettings) { s.store = "file:/leases" }, false},
	} {
		s := apart
		if c.change(&s); s.countsApart() != c.apart {
			t.Errorf("%s: %t", name, s.countsApart())
		}
	}
	leases := memory.New(memory.Config{})
	says := func(verdict cloud.Verdict, text string) {
		t.Helper()
		x := &doctorReport{}
		x.examineQuorums(t.Context(), leases)
		if len(x.rows) != 1 || x.failed != 0 || x.rows[0][1] != string(verdict) || !strings.Contains(x.rows[0][3], text) {
			t.Errorf("%q, want %s with %q", x.rows, verdict, text)
		}
	}
	configure := func(e leadership.Election, p leadership.BallotPolicy) {
		t.Helper()
		c := leadership.ConfigureCommand{Config: leadership.Config{Ballot: p}}
		if _, err := leadership.New(leases).Configure(t.Context(), leadership.ConfigureRequest{Election: e, ConfigureCommand: c}); err != nil {
			t.Fatal(err)
		}
	}
	configure("a", leadership.BallotPolicy{Strategy: leadership.StrategyPriority})
	says(cloud.OK, "no election has one")
	quorum := leadership.BallotPolicy{Quorum: leadership.QuorumPolicy{Electorate: leadership.NewNames("n1", "n2", "w")}}
	configure("jobs", quorum)
	configure("reports", quorum)
	says(cloud.Warning, `2 elections, such as "jobs", have a quorum`)
	for _, e := range []leadership.Election{"jobs", "reports"} {
		d := leadership.DeleteRequest{Election: e}
		if _, err := leadership.New(leases).Delete(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	says(cloud.OK, "no election has one")
	if err := leases.Close(); err != nil {
		t.Fatal(err)
	}
}

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"regent/cmd/regent/internal/cloud"
	"regent/leadership"
	"regent/leadership/service"
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
call without a credential: FAILED`
	if strings.Join(got, "\n") != want || x.failed != 8 {
		t.Errorf("%d failed:\n%s\nwant\n%s", x.failed, strings.Join(got, "\n"), want)
	}
}

func TestDoctorWarnsOfAQuorumWhoseMembersAreCountedApart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		s     doctorSettings
		apart bool
	}{
		"several instances, and no topic of members": {doctorSettings{store: "firestore:p", events: "t", members: noMembers}, true},
		"a topic of members":                         {doctorSettings{store: "firestore:p", events: "t", members: "m"}, false},
		"one instance":                               {doctorSettings{store: "firestore:p", events: noEvents, members: noMembers}, false},
		"a store of one process":                     {doctorSettings{store: "file:/leases", events: "t", members: noMembers}, false},
	} {
		if c.s.countsApart() != c.apart {
			t.Errorf("%s: %t", name, !c.apart)
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
	says(cloud.OK, "no election has one")
	service, quorum := service.New(leases), leadership.BallotPolicy{Quorum: leadership.QuorumPolicy{Electorate: leadership.NewNames("n1", "n2", "w")}}
	for e, p := range map[leadership.Election]leadership.BallotPolicy{"a": {Strategy: leadership.StrategyPriority}, "deleted": quorum, "jobs": quorum, "reports": quorum} {
		c := leadership.Configure{Config: leadership.Config{Ballot: p}}
		if _, err := service.Do(t.Context(), c.In(e)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := service.Do(t.Context(), leadership.Delete{Election: "deleted"}); err != nil {
		t.Fatal(err)
	}
	says(cloud.Warning, `2 elections, such as "jobs", have a quorum`)
}

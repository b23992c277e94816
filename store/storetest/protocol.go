package storetest

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/httpapi"
	"regent/httpapi/apitest"
	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/instance"
	"regent/leadership/service"
)

// Subject is the subject of the protocol cases: a Service, or a client or instance in its place.
type Subject = instance.Protocol

// jobs is the election of most cases.
const jobs leadership.Election = "jobs"

// slack is how much real time a case may take on a slow machine without failing: more than any case
// takes, and less than the leases in the cases.
const slack = 20 * time.Second

// pair is one case's elections, seen through two Subjects on one store.
type pair struct {
	testing.TB
	backing Backing
	a, b    Subject
}

// ask returns an acquire by the candidate of that name with its own key.
func (p *pair) ask(candidate string) leadership.AcquireRequest {
	return leadership.AcquireRequest{Election: jobs, CandidateID: leadership.CandidateID(candidate), Key: keyOf(candidate)}
}

// refused expects an error with the code, and returns it if it is an *Error.
func (p *pair) refused(err error, code leadership.Code) *leadership.Error {
	p.Helper()
	if !errors.Is(err, code) {
		p.Fatalf("got error %v, want one with code %s", err, code)
	}
	var e *leadership.Error
	errors.As(err, &e)
	return e
}

// leads expects that the candidate leads with the token.
func (p *pair) leads(l leadership.Lease, candidate string, token leadership.Token) {
	p.Helper()
	if l.State != leadership.Held || string(l.LeaderID) != candidate || l.Token != token {
		p.Errorf("got %s, leader %q, token %d; want held by %q with token %d", l.State, l.LeaderID, l.Token, candidate, token)
	}
}

// protocolCase is one sentence of the protocol.
type protocolCase struct {
	rule string
	run  func(*pair)
}

// RunProtocol checks that a Service on the store obeys the protocol.
func RunProtocol(t *testing.T, h Harness) {
	runProtocol(t, h, func(_ testing.TB, store service.Store) Subject { return service.New(store) })
}

// RunProtocolOverHTTP checks that an instance on the store, behind the REST API and its client,
// obeys the protocol. Requests and replies must agree with openapi.yaml. It is for the memory store
// and for one that is far away: what the API adds is the same on every store.
func RunProtocolOverHTTP(t *testing.T, h Harness) { runProtocol(t, h, overHTTP) }

func runProtocol(t *testing.T, h Harness, front func(testing.TB, service.Store) Subject) {
	for _, cases := range [][]protocolCase{protocolCases, repeatCases()} {
		for _, c := range cases {
			t.Run(c.rule, func(t *testing.T) {
				t.Parallel()
				backing := h(t)
				c.run(&pair{
					TB:      t,
					backing: backing,
					a:       front(t, backing.Open(t)),
					b:       front(t, backing.Open(t)),
				})
				if t.Failed() {
					t.Logf("the rule: %s", c.rule)
				}
			})
		}
	}
}

// overHTTP puts an instance, a real server and a real client in front of the store, and checks each
// of their exchanges against the API's contract. The instance does nothing by itself: it does not
// run.
func overHTTP(t testing.TB, store service.Store) Subject {
	inst, err := instance.New(instance.Config{Store: store, Journal: journalOf(t, store)})
	require.NoError(t, err)
	server := httptest.NewServer(httpapi.New(httpapi.Config{Service: inst}))
	t.Cleanup(server.Close)
	checked := &http.Client{Transport: apitest.New(t).Transport(server.Client().Transport)}
	c, err := client.New(client.Config{Server: server.URL, HTTP: checked})
	require.NoError(t, err)
	return c
}

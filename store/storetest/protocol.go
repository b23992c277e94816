package storetest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"regent/httpapi"
	"regent/httpapi/apitest"
	"regent/leadership"
	"regent/leadership/client"
)

// protocolCase is one sentence of the protocol.
type protocolCase struct {
	rule string
	run  func(*world)
}

// RunProtocol holds a Service on the store to the protocol, twice: called directly, and through the REST API and its client. What goes
// over the wire is held to openapi.yaml.
func RunProtocol(t *testing.T, h Harness) {
	t.Run("service", func(t *testing.T) {
		runProtocol(t, h, func(_ testing.TB, s *leadership.Service) Subject { return s })
	})
	t.Run("http", func(t *testing.T) { runProtocol(t, h, overHTTP) })
}

func runProtocol(t *testing.T, h Harness, front func(testing.TB, *leadership.Service) Subject) {
	for _, cases := range [][]protocolCase{leaseCases, historyCases, operatorCases, batchCases, timeCases} {
		for _, c := range cases {
			t.Run(c.rule, func(t *testing.T) {
				t.Parallel()
				backing := h(t)
				c.run(&world{
					TB:      t,
					backing: backing,
					a:       front(t, leadership.New(backing.Open(t))),
					b:       front(t, leadership.New(backing.Open(t))),
					keys:    make(map[string]leadership.Key),
				})
				if t.Failed() {
					t.Logf("the rule: %s", c.rule)
				}
			})
		}
	}
}

// overHTTP puts a real server and a real client in front of the service, and holds each of their exchanges to the API's contract.
func overHTTP(t testing.TB, s *leadership.Service) Subject {
	server := httptest.NewServer(httpapi.New(httpapi.Config{Service: bare{Service: s}}))
	t.Cleanup(server.Close)
	checked := &http.Client{Transport: apitest.New(t).Transport(server.Client().Transport)}
	c, err := client.New(client.Config{Server: server.URL, HTTP: checked})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// bare is a service without an instance around it: every read is strong, and nobody waits or watches.
type bare struct {
	*leadership.Service
	instance
}

// instance has what the suite does not call.
type instance struct{ httpapi.Service }

// Read implements httpapi.Service.
func (b bare) Read(ctx context.Context, r leadership.ReadRequest) (leadership.Reading, error) {
	l, err := b.Get(ctx, r.Election)
	return leadership.Reading{Lease: l}, err
}

package storetest

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"regent/httpapi"
	"regent/httpapi/apitest"
	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/instance"
	"regent/leadership/service"
)

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
	for _, cases := range [][]protocolCase{leaseCases, historyCases, operatorCases, batchCases, timeCases, repeatCases()} {
		for _, c := range cases {
			t.Run(c.rule, func(t *testing.T) {
				t.Parallel()
				backing := h(t)
				c.run(&pair{
					TB:      t,
					backing: backing,
					a:       front(t, backing.Open(t)),
					b:       front(t, backing.Open(t)),
					keys:    make(map[string]leadership.Key),
					began:   time.Now(),
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
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(httpapi.New(httpapi.Config{Service: inst}))
	t.Cleanup(server.Close)
	checked := &http.Client{Transport: apitest.New(t).Transport(server.Client().Transport)}
	c, err := client.New(client.Config{Server: server.URL, HTTP: checked})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

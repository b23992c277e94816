package storetest

import (
	"testing"

	"regent/leadership"
)

// protocolCase is one sentence of the protocol.
type protocolCase struct {
	rule string
	run  func(*world)
}

// RunProtocol holds a Service on the store to the protocol, twice: called directly, and through the REST API and its client.
func RunProtocol(t *testing.T, h Harness) {
	t.Run("service", func(t *testing.T) {
		runProtocol(t, h, func(_ testing.TB, s *leadership.Service) Subject { return s })
	})
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

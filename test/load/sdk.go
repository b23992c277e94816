package load

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"regent/leadership"
	"regent/leadership/client"
)

// newSDKs makes the clients of a process whose agents use the Go SDK: one for each server, so that
// they renew their leases together.
func (m *members) newSDKs() (all []*client.Client, err error) {
	for _, server := range m.Servers {
		c, err := client.New(client.Config{
			Server:    "http://" + server,
			HTTP:      &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: m.Size}},
			Candidate: client.Candidate{ID: leadership.CandidateID(fmt.Sprintf("%s-%d", m.Kind, m.First)), LeaseDuration: m.Lease},
			Log:       slog.New(slog.DiscardHandler),
		})
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// campaign asks to lead an election of agent i's own, and then keeps the lease for as long as it
// can. It calls there once the agent leads or, if it is to wait, once it asks.
func (m *members) campaign(i int, there func()) error {
	sdks, err := m.sdks()
	if err != nil {
		return err
	}
	state := ""
	if m.Kind == Candidates {
		m.move(i, &state, "waits")
		there()
	}
	election := leadership.Election(fmt.Sprintf("%s-%05d", m.Election, m.First+i))
	lease, err := sdks[i%len(sdks)].Campaign(context.Background(), election)
	if err != nil {
		return err
	}
	m.move(i, &state, "leads")
	if m.Kind == Leaders {
		there()
	}
	<-lease.Context().Done()
	m.move(i, &state, "has lost its lease")
	return nil
}

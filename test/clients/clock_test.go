package clients_test

import (
	"net/http"
	"time"

	"regent/test/clients"
)

// clockTrials have clocks that are wrong.
var clockTrials = []trial{
	{name: "the times of day in replies jump", run: func(s *scene) {
		dates := inTurns("1999-12-31T23:59:59Z", "2100-01-01T00:00:00Z")
		s.gate.edit(func(_ *exchange, reply map[string]any, header http.Header) {
			date := dates()
			for _, name := range []string{"acquiredAt", "lastHeartbeat", "leaseExpiration", "readAt"} {
				if _, ok := reply[name]; ok {
					reply[name] = date
				}
			}
			at, _ := time.Parse(time.RFC3339, date)
			header.Set("Date", at.Format(http.TimeFormat))
		})
		s.gate.hurry(often)
		d := s.start(clients.Options{})
		d.leads(1)
		s.renews(4)
		d.goesOn()
		d.stops()
	}},
	{name: "the server's clock is 0.1 % fast: an hour's lease ends 3.6 s early", lease: time.Hour, fast: 0.001, needs: []ability{remaining}, run: func(s *scene) {
		d := s.start(clients.Options{})
		d.leads(1)
		d.goesOn()
		d.stops()
	}},
}

// inTurns returns one after the other.
func inTurns(all ...string) func() string {
	next := make(chan string, len(all))
	for _, one := range all {
		next <- one
	}
	return func() string {
		one := <-next
		next <- one
		return one
	}
}

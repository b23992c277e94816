package clients_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
	"regent/test/clients"
)

// transportTrials bend HTTP.
var transportTrials = []trial{
	{name: "a renewal is redirected", lease: soon, run: func(s *scene) {
		to, came := s.elsewhere()
		s.survives(redirect(to), redirect(to))
		if came() {
			s.Error("it has followed the redirect")
		}
	}},
	{name: "acquire is redirected", run: func(s *scene) {
		to, came := s.elsewhere()
		s.gate.on(wire.VerbAcquire, 2, redirect(to))
		d := s.start(clients.Options{})
		s.until("it fails, or tries again", func() bool { return d.isOver() || len(s.gate.of(wire.VerbAcquire)) > 2 })
		d.leaves()
		if came() {
			s.Error("it has followed the redirect")
		}
	}},
	{name: "a reply comes byte by byte", lease: soon, run: func(s *scene) { s.survives(slowly(200 * time.Millisecond)) }},
	{name: "all replies come byte by byte", lease: 3 * time.Second, run: func(s *scene) { s.expires(slowly(200 * time.Millisecond)) }},
	{name: "a reply is cut in the middle", lease: soon, run: func(s *scene) { s.survives(half, half) }},
	{name: "a reply is endless", lease: soon, run: func(s *scene) { s.survives(huge) }},
	{name: "http:// to another machine is refused", run: func(s *scene) {
		s.setup = []string{"REGENT_SERVER=http://192.0.2.1:8080"}
		s.start(clients.Options{}).fails("lead", clients.Other, leadership.InvalidArgument)
	}},
}

// elsewhere is another server, and whether a request has come to it.
func (s *scene) elsewhere() (url string, came func() bool) {
	var n atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { n.Add(1) }))
	s.Cleanup(server.Close)
	return server.URL, func() bool { return n.Load() > 0 }
}

package test

import (
	"strings"
	"testing"

	"regent/test/machine"
	"regent/test/proxy"
)

// races is how often the repeated call meets the first one while the server is at work on it.
const races = 25

// more is by how many bytes two replies to the same call differ at most: a time that it took, such
// as waitedMs, has more digits on a machine that is busy.
const more = 50

// Every mutation, with its request and its reply cut after every byte, and then the same call
// again: the election's state, its history and the caller's answer must be those of a single call.
// Half a request does nothing, and no caller is told more than it can know.
func TestACallCutAnywhereAndRepeatedIsDoneOnce(t *testing.T) {
	all := newTotal(t)
	for _, m := range mutations {
		for _, end := range []struct {
			name        string
			reset, kept bool
			stride      int // one byte in so many
		}{
			{"closed", false, false, 1},
			{"reset", true, false, 1},
			{"closed in its second call", false, true, 7},
			{"reset in its second call", true, true, 7},
		} {
			end.stride = machine.Size(19, end.stride)
			t.Run(m.name+"; "+end.name, func(t *testing.T) {
				t.Parallel()
				s := sweepInMemory(t, m)
				s.kept = end.kept
				request, reply := s.measure()
				start := 0
				if end.kept {
					start = 1 // after none the line would be cut while no call is made
				}
				for n := start; n < request; n += end.stride {
					s.trial(proxy.Cut{Way: proxy.Request, After: n, Reset: end.reset})
				}
				for range machine.Size(5, races) {
					s.race(request, end.reset)
				}
				for n := start; n < reply; n += end.stride {
					s.trial(proxy.Cut{Way: proxy.Reply, After: n, Reset: end.reset})
				}
				s.trial(proxy.Cut{Way: proxy.Reply, After: reply, Reset: end.reset})
				s.trial(proxy.Cut{Way: proxy.Reply, After: reply + more, Reset: end.reset})
				s.unreached()
				s.report(request, reply, end.reset, all)
			})
		}
	}
}

// The same with a process and its file, at some bytes.
func TestACallToAProcessCutAndRepeatedIsDoneOnce(t *testing.T) {
	t.Parallel()
	all := newTotal(t)
	server := inFile(t).serve(t)
	for _, m := range mutations {
		if m.later {
			continue // its clock cannot be moved
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			s := newSweep(t, m, strings.TrimPrefix(server.URL, "http://"), server.client, nil)
			request, reply := s.measure()
			for _, reset := range []bool{false, true} {
				for _, n := range []int{0, request / 2, request - 1} {
					s.trial(proxy.Cut{Way: proxy.Request, After: n, Reset: reset})
				}
				s.race(request, reset)
				for _, n := range []int{0, reply / 2, reply - more, reply + more} {
					s.trial(proxy.Cut{Way: proxy.Reply, After: n, Reset: reset})
				}
			}
			s.unreached()
			s.report(request, reply, false, all)
		})
	}
}

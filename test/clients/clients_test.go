package clients_test

import (
	"slices"
	"testing"
	"time"

	"regent/emulators/need"
	"regent/test/clients"
	"regent/test/machine"
)

// trial is one case.
type trial struct {
	name   string
	lease  time.Duration // 0 for a minute
	fast   float64       // how much faster the server's clock is, as 0.001
	stream time.Duration // how long a stream lasts
	needs  []ability
	run    func(*scene)
}

// trials are the cases, in the order of the table.
var trials = slices.Concat(plainTrials, lostTrials, lateTrials, answerTrials, awayTrials, clockTrials, transportTrials, watchTrials, cancelTrials, ledgerTrials)

func TestClientsLeadAndRelease(t *testing.T)         { each(t, plainTrials) }
func TestClientsBearLostReplies(t *testing.T)        { each(t, lostTrials) }
func TestClientsBearLateReplies(t *testing.T)        { each(t, lateTrials) }
func TestClientsTellAnswersApart(t *testing.T)       { each(t, answerTrials) }
func TestClientsBearAbsence(t *testing.T)            { each(t, awayTrials) }
func TestClientsTrustNoWallClock(t *testing.T)       { each(t, clockTrials) }
func TestClientsBearBadHTTP(t *testing.T)            { each(t, transportTrials) }
func TestClientsWatchWithoutGaps(t *testing.T)       { each(t, watchTrials) }
func TestClientsCanBeCancelled(t *testing.T)         { each(t, cancelTrials) }
func TestClientsLeaveBehindWhatTheySay(t *testing.T) { each(t, ledgerTrials) }

// each runs the cases with each client that they hold for; in the short form with three of them,
// in turns, which the order of tests draws if one is given.
func each(t *testing.T, some []trial) {
	t.Helper()
	t.Parallel()
	for _, c := range some {
		turn := machine.Drawn() + slices.IndexFunc(trials, func(o trial) bool { return o.name == c.name })
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for i, k := range kinds {
				itsTurn := (i+turn)*3%len(kinds) < machine.Size(3, len(kinds))
				if itsTurn && k.lacksFor(c) == "" {
					t.Run(k.name, func(t *testing.T) {
						t.Parallel()
						need.Programs(t, k.tools...)
						s := newScene(t, k, c)
						k.command(s, &clients.Options{}) // builds it, before another one leads for a time
						c.run(s)
						s.judge()
					})
				}
			}
		})
	}
}

// lacksFor says why the case cannot hold for the client; "" if it must.
func (k kind) lacksFor(c trial) string {
	for _, need := range c.needs {
		if why := k.lacks[need]; why != "" {
			return why
		}
	}
	return ""
}

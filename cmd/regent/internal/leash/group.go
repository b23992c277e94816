//go:build unix

package leash

import (
	"log/slog"
	"syscall"
	"time"
)

const (
	minLook = time.Millisecond
	maxLook = 50 * time.Millisecond
)

// slowDeath is when it is said that somebody does not die: an unkillable sleep in the kernel, or another user's process.
const slowDeath = time.Second

// end kills the group and whoever has left it, and returns when none of them runs any more. One SIGKILL reaches all of a group, for whoever is
// about to fork has to take it first; those that left are looked for until there are none.
func (g *group) end(log *slog.Logger) {
	slow := time.AfterFunc(slowDeath, func() { log.Error("the command was killed and is not gone; waiting for it") })
	defer slow.Stop()
	for pause := minLook; ; pause = min(2*pause, maxLook) {
		g.signal(syscall.SIGKILL)
		if !g.sweep() {
			return
		}
		time.Sleep(pause)
	}
}

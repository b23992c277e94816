//go:build unix && !linux

package leash

import "syscall"

// group is the process group that a command was started in.
type group struct {
	id   int
	mark string
}

func openGroup(id, _ int, mark string) *group { return &group{id, mark} }

func (g *group) close() {}

func (g *group) signal(sig syscall.Signal) { syscall.Kill(-g.id, sig) }

// sweep reports whether any process of the group still runs.
func (g *group) sweep() (left bool) { return syscall.Kill(-g.id, 0) == nil }

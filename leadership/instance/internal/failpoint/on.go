//go:build failpoints

// Package failpoint kills the process at a named point of the code. This file is for builds with
// the tag failpoints; see off.go.
package failpoint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// armed reads REGENT_FAILPOINT once, at the first hit of any name.
var armed = sync.OnceValue(func() *point {
	text, ok := os.LookupEnv("REGENT_FAILPOINT")
	if !ok {
		return &point{}
	}
	colon := strings.LastIndexByte(text, ':')
	n, err := strconv.ParseInt(text[colon+1:], 10, 64)
	if colon < 1 || err != nil || n < 1 {
		panic(fmt.Sprintf("REGENT_FAILPOINT is a name, a colon and a count from 1, not %q", text))
	}
	p := &point{name: text[:colon]}
	p.left.Store(n)
	return p
})

// point is the point at which the process is to die.
type point struct {
	name string
	left atomic.Int64 // hits until then, including that one
}

// Hit marks the point of that name. It does not return if the process is to die at this hit.
func Hit(name string) {
	if p := armed(); p.name == name && p.left.Add(-1) == 0 {
		die()
	}
}

// die ends the process by SIGKILL.
func die() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {} // the signal is on its way
}

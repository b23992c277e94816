//go:build failpoints

// Package failpoint kills the process at a named point of the code, as kill -9 would, so that tests can see what survives. This is the
// build that does.
package failpoint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// armed reads what was asked for: once, at the first hit of any name.
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

// point is where to die.
type point struct {
	name string
	left atomic.Int64 // hits until then
}

// Hit says that the code has come to the point of that name. It does not return if this is the hit to die at.
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

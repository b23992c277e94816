package main

import (
	"runtime"
	"testing"
)

func TestMemoryIsGivenBackOnceMuchOfItIsFree(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for _, c := range []struct {
		name       string
		free, used uint64
		want       bool
	}{
		{"at the start", 2 * mib, 45 * mib, false},
		{"a crowd is here", 20 * mib, 450 * mib, false},
		{"a part of a crowd has left", 150 * mib, 320 * mib, false},
		{"a crowd has left", 380 * mib, 70 * mib, true},
		{"a small crowd has left", 60 * mib, 60 * mib, true},
		{"a few have left", 30 * mib, 45 * mib, false},
	} {
		if got := tooMuchFree(c.free, c.used); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}

func TestMemoryInUseIsNotCountedAsFree(t *testing.T) {
	t.Parallel()
	block := make([]byte, 64<<20)
	_, used := heldMemory()
	runtime.KeepAlive(block)
	if used < uint64(len(block)) || used > 1<<40 {
		t.Errorf("%d bytes are used, with %d in one block", used, len(block))
	}
}

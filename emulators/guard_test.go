package emulators

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// stubborn ignores SIGTERM, prints that it is up, and has a child in its own group, which is the
// guard's.
var stubborn = []string{"sh", "-c", `trap "" TERM; sleep 1000 & echo up; while :; do wait; done`}

func TestAFamilyThatIgnoresSIGTERMIsKilled(t *testing.T) {
	t.Parallel()
	up := make(chan struct{}, 1)
	g, err := StartGuard(stubborn, nil, notifier(up))
	require.NoError(t, err)
	<-up
	if err := g.Stop(t.Context()); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func TestCommandThatEndsAtOnceIsReportedWithItsOutput(t *testing.T) {
	t.Parallel()
	g, err := StartGuard([]string{"sh", "-c", "echo no such thing >&2; exit 3"}, nil, nil)
	require.NoError(t, err)
	defer g.hangUp()
	err = awaitChild(t.Context(), KindFirestore, "127.0.0.1:1", g)
	if err == nil || !strings.Contains(err.Error(), "no such thing") || !strings.Contains(err.Error(), "status 3") {
		t.Errorf("awaitChild = %v, want the exit status and what was printed", err)
	}
}

// notifier signals the first writes.
type notifier chan struct{}

func (n notifier) Write(p []byte) (int, error) {
	select {
	case n <- struct{}{}:
	default:
	}
	return len(p), nil
}

package emulators

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStoppedEmulatorsLeaveNoProcess(t *testing.T) {
	needGcloud(t)
	t.Parallel()
	set, err := Start(t.Context(), Config{Source: SourceGcloud})
	require.NoError(t, err)
	sessions := map[Kind]int{}
	for _, kind := range Kinds() {
		sessions[kind], _ = family(t, set.Host(kind))
	}
	require.NoError(t, set.Stop(t.Context()))
	for _, session := range sessions {
		// Zombies hold no memory or files; the kernel may need a moment to reap them.
		wantGone(t, session, time.Second)
	}
	if err := set.Stop(t.Context()); err != nil {
		t.Errorf("a second Stop: %v", err)
	}
}

func TestATakenPortIsNoticed(t *testing.T) {
	needGcloud(t)
	for _, kind := range Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			squatter, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer squatter.Close()
			free, err := freePorts(kind)
			require.NoError(t, err)
			if _, err := (gcloud{}).startAt(t.Context(), kind, squatter.Addr().String(), free.rest); !errors.Is(err, errPortTaken) {
				t.Errorf("start on a taken port: %v, want errPortTaken, which is tried again", err)
			}
		})
	}
}

// So a second run at the same time has other ones, and a later one the same.
func TestTheUsualPortsAreForOneAtATime(t *testing.T) {
	const none = Kind("none") // no emulator of this machine has its ports
	first, err := usualPorts(none)
	if err != nil {
		t.Logf("another run of this test has them: %v", err)
		return
	}
	if _, err := usualPorts(none); err == nil {
		t.Error("two have them")
	}
	first.giveBack()
	again, err := usualPorts(none)
	if err != nil || again.host != first.host {
		t.Errorf("after they were given back: %s, %v; want %s", again.host, err, first.host)
	}
	again.giveBack()
}

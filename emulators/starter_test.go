package emulators

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/emulators/need"
)

// TestMain lets this binary be the starter that the test below kills.
func TestMain(m *testing.M) {
	if kind := os.Getenv("EMULATORS_TEST_STARTER"); kind != "" {
		beStarter(Kind(kind))
	}
	os.Exit(m.Run())
}

// beStarter starts an emulator as a test does, prints its host, and waits for its end.
func beStarter(kind Kind) {
	set, err := perProcess[kind]()
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	fmt.Println(set.Host(kind))
	bufio.NewReader(os.Stdin).ReadByte()
}

func TestEmulatorIsGoneOnceItsStarterIsKilled(t *testing.T) {
	needGcloud(t)
	for _, kind := range []Kind{KindFirestore, KindSpanner} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			starter, host := startStarter(t, kind)
			session, size := family(t, host)
			if size < 4 {
				t.Fatalf("%d processes keep the emulator, want a guard of two, gcloud and the emulator", size)
			}
			require.NoError(t, starter.Process.Kill())
			wantGone(t, session, stopLimit)
		})
	}
}

func startStarter(t *testing.T, kind Kind) (starter *exec.Cmd, host string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "EMULATORS_TEST_STARTER="+string(kind), "REGENT_EMULATORS=gcloud")
	_, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	if err := cmd.Start(); err != nil {
		t.Fatalf("start the starter: %v", err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || strings.HasPrefix(line, "error") {
		t.Fatalf("the starter said %q: %v", line, err)
	}
	return cmd, strings.TrimSpace(line)
}

// needGcloud skips the test where the SDK and its emulators are not installed.
func needGcloud(t *testing.T) {
	t.Helper()
	for _, kind := range Kinds() {
		if err := (gcloud{}).lacks(t.Context(), kind); err != nil {
			need.Lacks(t, fmt.Sprintf("the SDK has no emulator of %s: %v", kind.Title(), err))
		}
	}
}

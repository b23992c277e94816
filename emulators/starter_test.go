package emulators

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/emulators/need"
)

// TestMain lets this binary be the starter that the tests below end in several ways.
func TestMain(m *testing.M) {
	if kind := os.Getenv("EMULATORS_TEST_STARTER"); kind != "" {
		beStarter(Kind(kind), os.Getenv("EMULATORS_TEST_END"))
	}
	os.Exit(m.Run())
}

// beStarter starts an emulator as a test does, prints its host, and ends when told to.
func beStarter(kind Kind, end string) {
	set, err := perProcess[kind]()
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	fmt.Println(set.Host(kind))
	bufio.NewReader(os.Stdin).ReadByte()
	if end == "panic" {
		panic("as a test that fails badly")
	}
	os.Exit(0)
}

func TestEmulatorIsGoneHoweverItsStarterEnds(t *testing.T) {
	needGcloud(t)
	for _, tt := range []struct {
		kind Kind
		end  string
	}{
		{KindFirestore, "kill -9"},
		{KindSpanner, "kill -9"},
		{KindPubSub, "terminate"},
		{KindSpanner, "panic"},
	} {
		t.Run(string(tt.kind)+" after "+tt.end, func(t *testing.T) {
			t.Parallel()
			cmd, host := startStarter(t, tt.kind, tt.end)
			session, size := family(t, host)
			if size < 4 {
				t.Fatalf("%d processes keep the emulator, want a guard of two, gcloud and the emulator", size)
			}
			endStarter(t, cmd, tt.end)
			wantGone(t, session, stopLimit)
		})
	}
}

// starter is a process that holds an emulator, and the pipe that tells it to end.
type starter struct {
	*exec.Cmd
	goOn interface{ Close() error }
}

func startStarter(t *testing.T, kind Kind, end string) (starter, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "EMULATORS_TEST_STARTER="+string(kind), "EMULATORS_TEST_END="+end, "REGENT_EMULATORS=gcloud")
	goOn, err := cmd.StdinPipe()
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
	return starter{cmd, goOn}, strings.TrimSpace(line)
}

func endStarter(t *testing.T, s starter, end string) {
	t.Helper()
	var err error
	switch end {
	case "kill -9":
		err = s.Process.Kill()
	case "terminate":
		err = s.Process.Signal(syscall.SIGTERM)
	default:
		err = s.goOn.Close()
	}
	if err != nil {
		t.Fatalf("end the starter by %s: %v", end, err)
	}
	if _, err := s.Process.Wait(); err != nil {
		t.Fatalf("wait for the starter: %v", err)
	}
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

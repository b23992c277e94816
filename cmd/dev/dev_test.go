package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/emulators"
	"regent/emulators/need"
	"regent/leadership"
	"regent/test/process"
)

func TestTwoInstancesServeOneStoreUntilASignal(t *testing.T) {
	t.Parallel()
	for _, store := range []string{"firestore", "spanner"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			p := start(t, "-store", store)
			first, second := p.ready(t)
			grant, err := newClient(t, first).Acquire(t.Context(), leadership.AcquireRequest{Election: "reports", CandidateID: "ann"})
			require.NoError(t, err)
			reading, err := newClient(t, second).Read(t.Context(), leadership.ReadRequest{Election: "reports", Strong: true})
			if err != nil || reading.Lease.Token != grant.Token || reading.Lease.LeaderID != "ann" {
				t.Errorf("the second instance reads %+v, %v", reading.Lease, err)
			}
			pids := []int{p.pid(t, 1), p.pid(t, 2)}
			p.end(t, os.Interrupt)
			for _, pid := range pids {
				wantGone(t, pid)
			}
		})
	}
}

func TestNothingIsLeftAfterAKill(t *testing.T) {
	t.Parallel()
	p := startAlone(t)
	p.ready(t)
	pids := []int{p.pid(t, 1), p.pid(t, 2)}
	for _, kind := range []emulators.Kind{emulators.KindFirestore, emulators.KindPubSub} {
		pids = append(pids, emulatorOf(t, p.host(t, kind))...)
	}
	require.NoError(t, p.Process.Kill())
	for _, pid := range pids {
		wantGone(t, pid)
	}
}

func TestAnInstanceThatIsKilledComesBackAndTheOtherGoesOn(t *testing.T) {
	t.Parallel()
	p := start(t, "-restart", "1ms")
	first, second := p.ready(t)
	before := p.pid(t, 1)
	require.NoError(t, syscall.Kill(before, syscall.SIGKILL))
	p.await(t, "instance 1 ("+first+") has ended; the other goes on")
	if _, err := ask(t.Context(), second+"/health/ready"); err != nil {
		t.Errorf("the other: %v", err)
	}
	p.await(t, "instance 1 is back")
	if after := p.pid(t, 1); after == before {
		t.Errorf("process %d is said to be back", after)
	}
	if _, err := ask(t.Context(), first+"/health/ready"); err != nil {
		t.Errorf("at its address: %v", err)
	}
	p.end(t, os.Interrupt)
}

func TestAllEndsWithMake(t *testing.T) {
	t.Parallel()
	env := []string{"FIRESTORE_EMULATOR_HOST=" + emulators.Firestore(t), "PUBSUB_EMULATOR_HOST=" + emulators.PubSub(t)}
	p := startBy(t, []string{"sh", "-c", `"$@" & wait`, "sh"}, env, "-project", emulators.Name(t))
	p.ready(t)
	if err := p.Process.Kill(); err != nil { // the shell, in the place of make
		t.Fatal(err)
	}
	p.read(t, "stopped; nothing is left running", "make dev:")
}

func TestAllEndsWithAnEmulator(t *testing.T) {
	t.Parallel()
	p := startAlone(t)
	p.ready(t)
	instances := []int{p.pid(t, 1), p.pid(t, 2)}
	for _, pid := range emulatorOf(t, p.host(t, emulators.KindPubSub)) {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	p.await(t, "the Pub/Sub emulator has ended by itself")
	if err := p.Wait(); err == nil {
		t.Error("exit status 0")
	}
	for _, pid := range instances {
		wantGone(t, pid)
	}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	regent := process.Regent.Path(t)
	gcloud, err := exec.LookPath("gcloud")
	if err != nil {
		need.Lacks(t, "no gcloud to run without Java")
	}
	withoutJava := t.TempDir()
	require.NoError(t, os.Symlink(gcloud, filepath.Join(withoutJava, "gcloud")))
	squatter, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer squatter.Close()
	for name, c := range map[string]struct {
		path, source, host string
		args               []string
		want               []string
	}{
		"no SDK":               {t.TempDir(), "gcloud", "", nil, []string{"gcloud is not on PATH", "Install the Google Cloud SDK", "Docker"}},
		"no Java":              {withoutJava, "gcloud", "", nil, []string{"java is not on PATH", "Java 21"}},
		"an emulator long ago": {withoutJava, "", "127.0.0.1:1", nil, []string{"FIRESTORE_EMULATOR_HOST is set", "unset it"}},
		"a taken port":         {withoutJava, "", "", []string{"-listen", "127.0.0.1:0," + squatter.Addr().String()}, []string{squatter.Addr().String() + " is taken", "LISTEN="}},
		"no binary":            {withoutJava, "", "", []string{"-regent", "/nowhere/regent"}, []string{"/nowhere/regent", "make build"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PATH", c.path)
			t.Setenv("REGENT_EMULATORS", c.source)
			t.Setenv("FIRESTORE_EMULATOR_HOST", c.host)
			t.Setenv("PUBSUB_EMULATOR_HOST", "")
			err := run(t.Context(), append([]string{"-regent", regent, "-dir", t.TempDir(), "-listen", "127.0.0.1:0"}, c.args...))
			if err == nil {
				t.Fatal("it ran")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\ndoes not say %q", err, want)
				}
			}
		})
	}
}

func TestAFolderOfLogsIsForOneRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mine, err := lock(filepath.Join(dir, "lock"))
	require.NoError(t, err)
	defer mine.Close()
	err = run(t.Context(), []string{"-dir", dir, "-regent", "/nowhere/regent"})
	if err == nil || !strings.Contains(err.Error(), "another make dev uses "+dir) || !strings.Contains(err.Error(), "BUILD=") {
		t.Errorf("a second one: %v", err)
	}
}

package emulators

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// fakeSDK makes a directory for PATH with a gcloud, and the named components installed beside it.
func fakeSDK(t *testing.T, components ...string) string {
	t.Helper()
	root := t.TempDir()
	writeFile(t, filepath.Join(root, "bin", "gcloud"), "#!/bin/sh\nexit 1\n")
	writeFile(t, filepath.Join(root, ".install", "core.manifest"), "")
	for _, name := range components {
		writeFile(t, filepath.Join(root, ".install", name+".manifest"), "")
	}
	return filepath.Join(root, "bin")
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
}

// bareEnvironment hides every source of this machine.
func bareEnvironment(t *testing.T, path string) {
	t.Helper()
	for _, kind := range Kinds() {
		t.Setenv(kind.Variable(), "")
	}
	t.Setenv("REGENT_EMULATORS", "")
	t.Setenv("REGENT_REQUIRE_EMULATORS", "")
	t.Setenv("PATH", path)
}

func TestTheFirstSourceThatHasTheEmulatorIsChosen(t *testing.T) {
	withJava := fakeSDK(t, "cloud-firestore-emulator", "cloud-spanner-emulator")
	writeFile(t, filepath.Join(withJava, "java"), "")
	elsewhere := t.TempDir()
	require.NoError(t, os.Symlink(filepath.Join(withJava, "gcloud"), filepath.Join(elsewhere, "gcloud")))
	noJava := fakeSDK(t, "cloud-firestore-emulator", "cloud-spanner-emulator")

	for _, tt := range []struct {
		name   string
		kind   Kind
		path   string
		host   string
		forced Source
		want   Source
		lacks  string // part of the error, if there is one
	}{
		{name: "a variable comes before the SDK", kind: KindFirestore, path: withJava, host: "127.0.0.1:1", want: SourceEnv},
		{name: "the SDK with the component", kind: KindFirestore, path: withJava, want: SourceGcloud},
		{name: "the SDK through a link", kind: KindSpanner, path: elsewhere, want: SourceGcloud},
		{name: "Firestore needs Java", kind: KindFirestore, path: noJava, forced: SourceGcloud, lacks: "java is not on PATH"},
		{name: "a missing component", kind: KindPubSub, path: withJava, forced: SourceGcloud, lacks: "has no component pubsub-emulator"},
		{name: "no gcloud", kind: KindSpanner, path: t.TempDir(), forced: SourceGcloud, lacks: "gcloud is not on PATH"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bareEnvironment(t, tt.path)
			t.Setenv(tt.kind.Variable(), tt.host)
			t.Setenv("REGENT_EMULATORS", string(tt.forced))
			cfg, err := Config{}.complete()
			require.NoError(t, err)
			got, err := choose(t.Context(), cfg, tt.kind)
			if tt.lacks == "" {
				if err != nil || got.name != tt.want {
					t.Fatalf("choose = %q, %v, want %q", got.name, err, tt.want)
				}
				return
			}
			wantUnavailable(t, err, tt.lacks, "Install the Google Cloud SDK", partsOf[tt.kind].component, tt.kind.Variable())
		})
	}
}

func wantUnavailable(t *testing.T, err error, parts ...string) {
	t.Helper()
	if !errors.Is(err, ErrUnavailable) {
		t.Fatalf("error is %v, want ErrUnavailable", err)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error does not say %q: %v", part, err)
		}
	}
}

func TestABadSourceIsAnErrorThatNamesTheChoices(t *testing.T) {
	t.Setenv("REGENT_EMULATORS", "podman")
	_, err := Start(t.Context(), Config{Optional: true})
	if err == nil || errors.Is(err, ErrUnavailable) || strings.Count(err.Error(), "env, gcloud or docker") != 1 {
		t.Errorf("Start = %v, want an error that names env, gcloud and docker", err)
	}
}

func TestUnavailableEmulatorIsAnErrorUnlessOptional(t *testing.T) {
	bareEnvironment(t, t.TempDir())
	cfg := Config{Source: SourceGcloud}
	_, err := Start(t.Context(), cfg)
	wantUnavailable(t, err, "Firestore", "Spanner", "Pub/Sub")

	cfg.Optional = true
	set, err := Start(t.Context(), cfg)
	require.NoError(t, err)
	if len(set.Missing()) != 3 || len(set.Env()) != 0 || set.Host(KindSpanner) != "" {
		t.Errorf("missing %d, env %v, want all three missing and no variable", len(set.Missing()), set.Env())
	}
}

func TestRunningEmulatorIsUsedAndNotStopped(t *testing.T) {
	host := Spanner(t)
	t.Setenv("SPANNER_EMULATOR_HOST", host)
	set, err := Start(t.Context(), Config{Which: []Kind{KindSpanner}, Source: SourceEnv})
	require.NoError(t, err)
	if diff := cmp.Diff([]string{"SPANNER_EMULATOR_HOST=" + host}, set.Env()); diff != "" {
		t.Errorf("Env (-want +got):\n%s", diff)
	}
	require.NoError(t, set.Stop(t.Context()))
	if err := awaitAnswer(t.Context(), KindSpanner, host); err != nil {
		t.Errorf("after Stop: %v", err)
	}
}

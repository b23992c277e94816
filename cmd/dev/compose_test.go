package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// composeFile has the members that emulators/compose.yaml may have. Others are an error.
type composeFile struct {
	Services map[string]struct {
		Image       string
		Build       struct{ Context, Dockerfile string }
		Command     []string
		Environment map[string]string
		NetworkMode string                                `yaml:"network_mode"`
		StopGrace   string                                `yaml:"stop_grace_period"`
		DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
		HealthCheck struct {
			Test     []string
			Interval string
			Retries  int
		} `yaml:"healthcheck"`
	}
}

func readCompose(t *testing.T) composeFile {
	t.Helper()
	text, err := os.ReadFile("../../emulators/compose.yaml")
	require.NoError(t, err)
	var c composeFile
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(&c))
	return c
}

func TestComposeServesAsMakeDevDoes(t *testing.T) {
	t.Parallel()
	c := readCompose(t)
	s, err := parse(nil)
	require.NoError(t, err)
	if len(c.Services) != 4 {
		t.Errorf("%d services, want two emulators and two instances", len(c.Services))
	}
	for i, name := range []string{"regent-1", "regent-2"} {
		regent := c.Services[name]
		if diff := cmp.Diff(s.serveCommand(s.listen[i])[1:], separate(regent.Command)); diff != "" {
			t.Errorf("%s: arguments (-make dev +compose)\n%s", name, diff)
		}
		dockerfile := filepath.Join("../../emulators", regent.Build.Context, regent.Build.Dockerfile)
		if _, err := os.Stat(dockerfile); err != nil || regent.Image != "regent" {
			t.Errorf("%s: image %s, built by %s: %v", name, regent.Image, dockerfile, err)
		}
		for _, kind := range s.kinds() {
			if regent.DependsOn[string(kind)].Condition != "service_healthy" {
				t.Errorf("%s does not wait for %s, and topics are made at the start alone", name, kind)
			}
		}
	}
}

func TestComposeStartsTheEmulatorsOfMakeDev(t *testing.T) {
	t.Parallel()
	c := readCompose(t)
	s, err := parse(nil)
	require.NoError(t, err)
	for _, kind := range s.kinds() {
		emulator := c.Services[string(kind)]
		if want := "${EMULATORS_IMAGE:-" + kind.Image() + "}"; emulator.Image != want {
			t.Errorf("%s is of the image %s, want %s", kind, emulator.Image, want)
		}
		host := c.Services["regent-1"].Environment[kind.Variable()]
		if diff := cmp.Diff(kind.Command(host, ""), emulator.Command); host == "" || diff != "" {
			t.Errorf("%s at %q: command (-make dev +compose)\n%s", kind, host, diff)
		}
		if test := strings.Join(emulator.HealthCheck.Test, " "); !strings.HasSuffix(test, strings.ReplaceAll(host, ":", "/")) {
			t.Errorf("%s: the health of %s is not that of %s", kind, test, host)
		}
	}
	for name, service := range c.Services {
		if service.NetworkMode != "host" {
			t.Errorf("%s has the network %q: it must be reached at 127.0.0.1, by this machine alone", name, service.NetworkMode)
		}
	}
}

// separate splits --flag=value, which reads better in a list.
func separate(args []string) (separated []string) {
	for _, arg := range args {
		name, value, has := strings.Cut(arg, "=")
		if separated = append(separated, name); has {
			separated = append(separated, value)
		}
	}
	return separated
}

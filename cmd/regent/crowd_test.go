package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regent/test/process"
)

func TestAFullServerSaysSoOnceAMinuteAndIsDegradedForOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		counted := 0
		c := &crowd{log: slog.New(slog.NewTextHandler(&log, nil)), count: func(context.Context) { counted++ }}
		if got := c.degraded(); got != "" {
			t.Errorf("with room for all: %q", got)
		}
		lines := func() int { return strings.Count(log.String(), "connections are closed") }
		for range 100 {
			c.displaced()
			time.Sleep(100 * time.Millisecond)
		}
		if c.degraded() == "" || lines() != 1 || counted != 100 {
			t.Errorf("degraded %q, %d lines, %d counted; want a reason, 1 and 100", c.degraded(), lines(), counted)
		}
		time.Sleep(crowded)
		if got := c.degraded(); got != "" {
			t.Errorf("a minute later: %q", got)
		}
		if c.displaced(); lines() != 2 || !strings.Contains(log.String(), "closed=100") {
			t.Errorf("the log tells of too few: %s", log.String())
		}
	})
}

// A process that may open 128 files serves 64 connections, as does one with little memory.
func TestAFullServerTellsItsLogItsMetricsAndItsProbes(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]string{"files": "ulimit -n 128", "memory": "export GOMEMLIMIT=4MiB"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fillServer(t, limit)
		})
	}
}

// fillServer fills a server that a command of the shell has limited to 64 connections.
func fillServer(t *testing.T, limit string) {
	cmd := itself(t, "-c", limit+`; exec "$@"`, "sh", os.Args[0], "serve", "--listen", "127.0.0.1:0", "--store", "memory:", "--metrics-listen", "127.0.0.1:0")
	cmd.Path, cmd.Args[0] = "/bin/sh", "sh"
	p := process.Serve(t, cmd)
	metrics := p.Log.Await(t, "showing metrics")["address"].(string)
	address := strings.TrimPrefix(p.URL, "http://")
	for range 80 {
		connection, err := net.Dial("tcp", address)
		require.NoError(t, err)
		t.Cleanup(func() { connection.Close() })
	}
	p.Log.Await(t, "connections are closed to make room for others; raise the limit of open files (ulimit -n) or of memory (GOMEMLIMIT, or the container's), whichever is lower here, or add instances")
	if got := get(t, "http://"+address+"/health/ready"); !strings.Contains(got, `"degraded"`) || !strings.Contains(got, "may open no more files, or has no memory for more connections") {
		t.Errorf("/health/ready: %s", got)
	}
	if got := get(t, "http://"+metrics+"/metrics"); !strings.Contains(got, "\nregent_connections_displaced_total ") || strings.Contains(got, "\nregent_connections_displaced_total 0\n") {
		t.Errorf("the metrics do not count them: %s", got)
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	response, err := http.Get(url)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(body)
}

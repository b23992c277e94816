package main

import (
	"bytes"
	"encoding/xml"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheRecordingHasTheCommandsOfTheFrontPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	recording, err := os.ReadFile("../../leadership/session.svg")
	require.NoError(t, err)
	typed, err := commandsOf(string(page))
	if err != nil || len(typed) < 8 {
		t.Fatalf("the page has the commands %q: %v", typed, err)
	}
	rest := recording
	for _, command := range typed {
		var line bytes.Buffer
		xml.EscapeText(&line, []byte("$ "+command))
		_, after, found := bytes.Cut(rest, append(line.Bytes(), "</text>"...))
		if !found {
			t.Fatalf("the recording does not go on with %q: run make pictures", command)
		}
		rest = after
	}
	if n := bytes.Count(recording, []byte(">$ ")); n != len(typed) || len(recording) > 40<<10 {
		t.Errorf("the recording has %d commands in %d bytes, and the page %d: run make pictures", n, len(recording), len(typed))
	}
}

package authz_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regent/httpapi/access/authz"
)

func TestAChangedAccessFileIsLoadedAndAnInvalidOneIsNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "access.yaml")
		write := func(text string) {
			t.Helper()
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		}
		write(accessText)
		var log bytes.Buffer
		f, err := authz.OpenFile(path, authz.Admitted, slog.New(slog.NewTextHandler(&log, nil)))
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan struct{})
		go func() {
			defer close(ran)
			f.Run(ctx)
		}()
		after := func() *authz.Access {
			time.Sleep(time.Minute)
			synctest.Wait()
			return f.Access()
		}
		first := f.Access()
		if after() != first || log.Len() > 0 {
			t.Errorf("a file that did not change was read anew: %s", &log)
		}
		write(accessText[:len(accessText)/2]) // still being written
		time.Sleep(16 * time.Second)
		write(accessText)
		if after() != first || log.Len() > 0 {
			t.Errorf("an access file that was half written was looked at: %s", &log)
		}
		if f.Invalid() {
			t.Error("a valid access file counts as invalid")
		}
		write("grants: []")
		if after() != first || !f.Invalid() {
			t.Error("an access file that is none was taken, or is not told of")
		}
		os.Remove(path)
		if after() != first || !f.Invalid() {
			t.Error("an access file that is gone was taken, or is not told of")
		}
		write("grants: []")
		if after() != first || !f.Invalid() {
			t.Error("an access file that came back as bad as it was is not told of")
		}
		write(accessText + "  - {principals: [more@test], roles: [observer], elections: [\"*\"]}\n")
		if second := after(); second == first || f.Invalid() {
			t.Error("a new access file was not taken")
		}
		stop()
		<-ran
		if n := strings.Count(log.String(), "cannot be used"); n != 2 || strings.Count(log.String(), "the access file has changed") != 1 {
			t.Errorf("it was said %d times that the file cannot be used:\n%s", n, &log)
		}
	})
}

func TestAChangedAccessFileCountsWithinTwentySeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, write := following(t)
		first := f.Access()
		time.Sleep(16 * time.Second) // it was just read
		write(accessText + "  - {principals: [more@test], roles: [observer], elections: [\"*\"]}\n")
		time.Sleep(20 * time.Second)
		if synctest.Wait(); f.Access() == first {
			t.Error("a new access file is not taken after 20 s")
		}
		write("grants: []")
		time.Sleep(20 * time.Second)
		if synctest.Wait(); !f.Invalid() {
			t.Error("after 20 s it is not told that an access file is none")
		}
	})
}

func TestTwoReadsInARowMayFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, write := following(t)
		for range 2 { // a read that succeeds begins the count anew
			os.Remove(f.path)
			time.Sleep(31 * time.Second)
			if synctest.Wait(); f.Invalid() {
				t.Error("an access file that could not be read for half a minute counts as invalid")
			}
			write(accessText)
			time.Sleep(15 * time.Second)
		}
		os.Remove(f.path)
		time.Sleep(45 * time.Second)
		if synctest.Wait(); !f.Invalid() {
			t.Error("an access file that could not be read three times in a row counts as valid")
		}
	})
}

// followed is an access file that is followed until the test ends.
type followed struct {
	*authz.File
	path string
}

// following follows a file with accessText, which write replaces.
func following(t *testing.T) (f followed, write func(text string)) {
	f.path = filepath.Join(t.TempDir(), "access.yaml")
	write = func(text string) {
		require.NoError(t, os.WriteFile(f.path, []byte(text), 0o600))
	}
	write(accessText)
	var err error
	if f.File, err = authz.OpenFile(f.path, authz.Admitted, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	go f.Run(t.Context())
	return f, write
}

func TestAnAccessFileThatCannotBeReadIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.yaml")
	require.NoError(t, os.WriteFile(broken, []byte("grants: ["), 0o600))
	for _, path := range []string{filepath.Join(dir, "missing.yaml"), dir, broken} {
		if _, err := authz.OpenFile(path, authz.Admitted, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%s was taken for an access file", path)
		}
	}
}

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

	"regent/httpapi/access/authz"
)

func TestAChangedPolicyIsLoadedAndAnInvalidOneIsNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "policy.yaml")
		write := func(text string) {
			t.Helper()
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(policyText)
		var log bytes.Buffer
		f, err := authz.OpenFile(path, authz.Admitted, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan struct{})
		go func() {
			defer close(ran)
			f.Run(ctx)
		}()
		after := func() *authz.Policy {
			time.Sleep(time.Minute)
			synctest.Wait()
			return f.Policy()
		}
		first := f.Policy()
		if after() != first || log.Len() > 0 {
			t.Errorf("a file that did not change was read anew: %s", &log)
		}
		write(policyText[:len(policyText)/2]) // still being written
		time.Sleep(6 * time.Second)
		write(policyText)
		if after() != first || log.Len() > 0 {
			t.Errorf("a policy that was half written was looked at: %s", &log)
		}
		write("grants: []")
		if after() != first {
			t.Error("a policy that is none was taken")
		}
		os.Remove(path)
		if after() != first {
			t.Error("a policy that is gone was taken")
		}
		write(policyText + "  - {principals: [more@test], roles: [observer], elections: [\"*\"]}\n")
		if second := after(); second == first {
			t.Error("a new policy was not taken")
		}
		stop()
		<-ran
		if n := strings.Count(log.String(), "cannot be used"); n != 2 || strings.Count(log.String(), "the policy has changed") != 1 {
			t.Errorf("it was said %d times that the file cannot be used:\n%s", n, &log)
		}
	})
}

func TestAPolicyThatCannotBeReadIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.yaml")
	if err := os.WriteFile(broken, []byte("grants: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "missing.yaml"), dir, broken} {
		if _, err := authz.OpenFile(path, authz.Admitted, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%s was taken for a policy", path)
		}
	}
}

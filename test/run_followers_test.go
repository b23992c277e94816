package test

import (
	"strings"
	"testing"

	"regent/leadership"
	"regent/test/process"
)

func TestACommandStartsOnceItsLeaderIsFollowed(t *testing.T) {
	t.Parallel()
	s := inFile(t).serve(t)
	if _, err := s.client.Configure(t.Context(), leadership.ConfigureRequest{Election: "e"}); err != nil {
		t.Fatal(err)
	}
	r := runScript(t, s.URL, "e --candidate ann --await-followers 1", "echo it runs")
	r.await("err", "waiting for members to follow the token")
	if got := r.text("out"); got != "" {
		t.Errorf("before it is followed: %q", got)
	}
	follower := invoke(t, process.Regent, []string{"REGENT_SERVER=" + s.URL}, "join", "e", "node-2")
	if err := follower.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		follower.Process.Kill()
		follower.Wait()
	})
	r.end(0)
	if got := r.text("out"); got != "it runs\n" {
		t.Errorf("once it is followed: %q", got)
	}
}

func TestALeaseThatIsNotFollowedIsReleased(t *testing.T) {
	t.Parallel()
	s := inFile(t).serve(t)
	r := runScript(t, s.URL, "e --lease 1s --await-followers 1", "echo it runs")
	if r.end(120); r.text("out") != "" || !strings.Contains(r.text("err"), "--await-followers asks for 1") {
		t.Errorf("it prints %q, and says\n%s", r.text("out"), r.text("err"))
	}
	if l, err := s.client.Get(t.Context(), "e"); err != nil || l.State != leadership.Vacant || l.Token != 1 {
		t.Errorf("%+v, %v; want that the lease was given back", l, err)
	}
}

package dashboard

import (
	"fmt"
	"testing"
	"time"
)

func TestScratchCosts(t *testing.T) {
	s := newSite(t, "")
	for i := range 40 {
		s.post(fmt.Sprintf("job-%03d:acquire", i), fmt.Sprintf(`{"candidateId":"ann","key":%q,"leaseDuration":"10m"}`, key1))
	}
	story(s)
	t.Log("made", s.store.taken())
	time.Sleep(7 * time.Second)
	t.Log("idle 7s", s.store.taken())
	p := newTab(t)
	tabs := []*tab{p}
	p.open(s.url)
	p.says("[data-name=job-001] .leader", "ann")
	time.Sleep(2 * time.Second)
	t.Log("fleet opened", s.store.taken())
	time.Sleep(20 * time.Second)
	t.Log("fleet 20s", s.store.taken())
	for range 4 {
		q := p.another()
		q.open(s.url)
		q.says("[data-name=job-001] .leader", "ann")
		tabs = append(tabs, q)
	}
	time.Sleep(2 * time.Second)
	t.Log("4 more", s.store.taken())
	for _, q := range tabs {
		t.Log(get[string](q, "document.visibilityState"))
	}
	time.Sleep(20 * time.Second)
	t.Log("5 for 20s", s.store.taken())
	for _, q := range tabs {
		q.open(s.url + "/ui/elections/planner")
		q.says("#tree", "planner.invoices")
		time.Sleep(time.Second)
		t.Log("one opened", s.store.taken())
	}
	time.Sleep(10 * time.Second)
	t.Log("one for 10s", s.store.taken())
	s.post("planner:ban", `{"candidateId":"agent-5","for":"24h","reason":"its disk fails","actor":"ann"}`)
	for _, q := range tabs {
		q.says("#overrides", "agent-5")
	}
	t.Log("after an event", s.store.taken())
}

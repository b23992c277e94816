package dashboard

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// names are the elections that are listed, in their order.
const names = `[...document.querySelectorAll('.body [role=row]')].map(e => e.dataset.name).join(' ')`

// fill makes elections of all kinds.
func fill(s *site) {
	s.lead("reports", "rep-1")
	s.lead("backups", "bak-1")
	s.lead("mail", "mx-1")
	s.post("mail:release", as("mx-1", 1, ""))
	s.lead("lock", "lo-1")
	s.post("lock:release", as("lo-1", 1, ""))
	s.post("lock:pause", `{"for":"1h","reason":"the database moves","actor":"ann"}`)
	s.call("PUT", "deploy", `{"policy":{"approval":{"every":"10h"}}}`)
	s.lead("deploy", "dep-1")
	s.post("deploy:requestApproval", as("dep-1", 1, `,"note":"the migration"`))
	s.call("PUT", "cluster", `{"policy":{"quorum":{"electorate":["n1","n2","w"],"need":1,"grace":"1ms"}}}`)
	s.post("cluster:acquire", `{"candidateId":"n1","leaseDuration":"1h","wait":"30s"}`)
	s.call("PUT", "cluster", `{"policy":{"quorum":{"electorate":["n1","n2","w"],"need":3,"grace":"1ms"}}}`)
	for i := range 4 {
		s.lead("flappy", fmt.Sprint("f-", i))
		s.post("flappy:release", as(fmt.Sprint("f-", i), i+1, ""))
	}
	s.lead("flappy", "f-9")
	s.lead("plan", "old")
	s.post("plan:handOver", as("old", 1, `,"to":"new","within":"10m"`))
	s.lead("pay", "pay-1")
	s.post("pay:evict", `{"reason":"it writes nonsense","actor":"ann"}`)
}

func TestTheFleetShowsWhatNeedsAPersonFirst(t *testing.T) {
	p, s := newTab(t), newSite(t, "")
	fill(s)
	p.open(s.url)
	for name, want := range map[string]string{
		"reports": "Leads", "mail": "No leader", "lock": "Paused, no leader", "deploy": "Approval waiting", "cluster": "Read-only",
		"flappy": "Flapping", "plan": "Hands over to new", "pay": "Ends: evicted",
	} {
		p.says(fmt.Sprintf("[data-name=%s] .state", name), want)
	}
	p.says("[data-name=reports] .leader", "rep-1")
	p.says("[data-name=flappy] .token", "#5")
	p.says("[data-name=reports] .left", "59 min")
	p.until("%s == 'cluster mail lock deploy flappy plan pay backups reports'", names)
	for filter, want := range map[string]string{"vacant": "mail lock", "readOnly": "cluster", "approval": "deploy", "flapping": "flappy", "all": "cluster mail lock deploy flappy plan pay backups reports"} {
		p.do(click("[data-filter=" + filter + "]"))
		p.until("%s == %q", names, want)
		p.says("[data-filter="+filter+"] b", fmt.Sprint(len(strings.Fields(want))))
		p.until("document.querySelector('[data-filter=%s]').ariaPressed == 'true' && document.querySelectorAll('[aria-pressed=true]').length == 1", filter)
	}
	p.do(click("[data-filter=all]"), enter("input[type=search]", "bak"))
	p.until("%s == 'backups'", names)
	p.says(".tools [role=status]", "1 of 9")
	p.shot("fleet-search")
}

func TestTheFleetSaysThatANewEpochIsAskedFor(t *testing.T) {
	p, s := newTab(t), newSite(t, "")
	s.call("PUT", "deploy", `{"policy":{"approval":{"every":"10h"}}}`)
	s.lead("deploy", "dep-1")
	s.post("deploy:requestApproval", as("dep-1", 1, `,"note":"the next migration","newEpoch":true`))
	p.open(s.url)
	p.says("[data-name=deploy] .state", "Approval of a new epoch waiting")
	s.post("deploy:approve", `{"fencingToken":1,"newEpoch":true,"reason":"fine","actor":"ann"}`)
	p.says("[data-name=deploy] .state", "Leads")
}

func TestEachColumnSortsBothWays(t *testing.T) {
	p, s := newTab(t), newSite(t, "")
	s.lead("a", "zoe")
	s.post("b:acquire", `{"candidateId":"yan","leaseDuration":"2h"}`)
	s.lead("c", "xia")
	s.post("c:release", as("xia", 1, ""))
	s.lead("c", "xia") // the second token, and the last change
	for i := range 2 {
		s.post("b:join", fmt.Sprintf(`{"candidateId":"w-%d","role":"worker","ttl":"5m"}`, i))
	}
	s.post("c:join", `{"candidateId":"w-3","role":"worker","ttl":"5m"}`)
	s.post("d:acquire", `{"candidateId":"vic","key":"`+key1+`","leaseDuration":"30m"}`)
	s.post("d:release", as("vic", 1, ""))
	p.open(s.url)
	p.says("[data-name=b] .line", "3 members")
	p.says("[data-name=c] .line", "2 members")
	for _, c := range []struct{ column, up, down string }{
		{"name", "a b c d", "d c b a"},
		{"leader", "d c b a", "a b c d"},
		{"token", "c a b d", "d b a c"},
		{"left", "d a c b", "b c a d"},
		{"line", "b c a d", "d a c b"},
		{"changed", "d c b a", "a b c d"},
		{"state", "d a b c", "c b a d"},
	} {
		p.do(click("[data-sort=" + c.column + "]"))
		p.until("%s == %q", names, c.up)
		first, second := "ascending", "descending"
		if c.column == "token" || c.column == "line" || c.column == "changed" { // the most comes first
			first, second = second, first
		}
		p.until("document.querySelector('[aria-sort=%s] [data-sort=%s]')", first, c.column)
		p.do(click("[data-sort=" + c.column + "]"))
		p.until("%s == %q", names, c.down)
		p.until("document.querySelector('[aria-sort=%s] [data-sort=%s]')", second, c.column)
	}
}

func TestEventsChangeTheFleetWithoutAReload(t *testing.T) {
	p, s := newTab(t), newSite(t, "")
	s.lead("reports", "rep-1")
	p.open(s.url)
	p.says("[data-name=reports] .leader", "rep-1")
	get[bool](p, "window.kept = document.querySelector('[data-name=reports]'); true")
	s.lead("mail", "mx-1")
	p.says("[data-name=mail] .leader", "mx-1")
	s.post("reports:release", as("rep-1", 1, ""))
	p.says("[data-name=reports] .state", "No leader")
	s.lead("reports", "rep-2")
	p.says("[data-name=reports] .leader", "rep-2")
	p.until("document.querySelector('[data-name=reports]') === window.kept")
	s.post("mail:release", as("mx-1", 1, ""))
	s.call("DELETE", "mail", "")
	p.until("!document.querySelector('[data-name=mail]')")
}

func TestAPauseIsSeenByALaterVisitorAndGoesWhenItRunsOut(t *testing.T) {
	p, s := newTab(t), newSite(t, "")
	for _, name := range []string{"a", "b"} {
		s.lead(name, "ann")
		s.post(name+":pause", `{"for":"5m","reason":"the database moves","actor":"ann"}`)
	}
	p.open(s.url)
	p.says("[data-name=a] .state", "Leads, paused")
	p.says("[data-name=b] .state", "Leads, paused")
	s.post("a:resume", `{"reason":"done","actor":"ann"}`)
	p.until("document.querySelector('[data-name=a] .state').textContent == 'Leads'")
	s.hang("GET", "")
	get[bool](p, later)
	p.until("document.querySelector('[data-name=b] .state').textContent == 'Leads'")
}

func TestAnElectionOutOfViewIsCountedAsReadOnly(t *testing.T) {
	p, s := newTab(t), newSite(t, "")
	for i := range 60 {
		s.lead(fmt.Sprintf("a-%02d", i), "ann")
	}
	s.call("PUT", "z", `{"policy":{"quorum":{"electorate":["n1","n2","w"],"need":1,"grace":"1ms"}}}`)
	s.post("z:acquire", `{"candidateId":"n1","leaseDuration":"1h","wait":"30s"}`)
	p.open(s.url)
	p.do(click("[data-sort=name]"))
	p.says("[data-filter=all] b", "61")
	p.says("[data-filter=readOnly] b", "0")
	p.until("document.querySelector('[data-name=z]').getBoundingClientRect().top > innerHeight")
	s.call("PUT", "z", `{"policy":{"quorum":{"electorate":["n1","n2","w"],"need":3,"grace":"1ms"}}}`)
	get[bool](p, later) // the page asks again after half a minute
	p.says("[data-filter=readOnly] b", "1")
}

func TestTheAddressKeepsWhatTheVisitorChose(t *testing.T) {
	p, s := newTab(t), newSite(t, "")
	for _, name := range []string{"a-1", "a-2", "b"} {
		s.lead(name, "ann")
	}
	s.call("PUT", "a-new", "{}")
	p.open(s.url)
	p.says("[data-name=a-new] .state", "Never led")
	p.says("[data-filter=vacant] b", "0") // that is no fault
	p.do(enter("input[type=search]", " A- "), click("[data-sort=name]"), click("[data-sort=name]"))
	p.until("%s == 'a-new a-2 a-1'", names)
	p.do(click("[data-name=a-1] a"))
	p.says("h1", "a-1")
	p.do(click("nav a"))
	p.until("%s == 'a-new a-2 a-1' && document.querySelector('input[type=search]').value == 'a-'", names)
	p.do(click("[data-filter=vacant]"))
	p.says("main", "No election matches")
	p.do(chromedp.Reload())
	p.until("document.querySelector('[data-filter=vacant]')?.ariaPressed == 'true'")
	p.says("main", "No election matches")
}

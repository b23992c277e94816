package dashboard

import (
	"fmt"
	"testing"
	"time"
)

func TestThePageFollowsElectionsOverARestartOfTheServer(t *testing.T) {
	p, s := newTab(t), newProcess(t)
	s.start()
	callAt(t, s.url, "POST", "reports:acquire", `{"candidateId":"ann","leaseDuration":"10m"}`)
	p.open(s.url)
	p.says("[data-name=reports] .leader", "ann")
	p.says("#live", "Live")
	one := p.another()
	one.open(s.url + "/ui/elections/reports")
	one.says(".hero", "ann")
	s.stop()
	for _, page := range []*tab{p, one} {
		page.says("#live", "Disconnected")
		page.says("#age", "What you see is", "old, as of", "Trying again")
		page.until("document.body.classList.contains('old')")
	}
	p.shot("disconnected")
	p.axe("disconnected")
	s.start()
	callAt(t, s.url, "POST", "mail:acquire", `{"candidateId":"cid"}`)
	callAt(t, s.url, "POST", "reports:pause", `{"for":"1h","reason":"after the restart","actor":"eve"}`)
	p.says("[data-name=mail] .leader", "cid")
	p.until("document.querySelectorAll('.body [role=row]').length == 2")
	one.says(".events", "after the restart")
	for _, page := range []*tab{p, one} {
		page.says("#live", "Live")
		page.until("!document.body.classList.contains('old') && document.querySelector('#age').hidden")
	}
}

func TestAnOutageOfTheStoreIsSaidAndPasses(t *testing.T) {
	p, s := newTab(t), newSite(t, "")
	s.lead("reports", "ann")
	p.open(s.url)
	p.says("[data-name=reports] .leader", "ann")
	one := p.another()
	one.open(s.url + "/ui/elections/reports")
	one.says(".hero", "ann")
	one.says("#overrides", "None stands.")
	one.says("#tree", "None.")
	s.down.Store(true)
	for _, page := range []*tab{p, one} {
		page.do(front()) // a page in the background asks nothing
		page.says("#live", "In trouble")
		page.says("#age", "What you see is", "The server does not reach its store.")
	}
	one.says("#overrides", "None stands.") // what was read before stays, and is called old
	one.shot("outage")
	one.do(click(one.orders("pause")), enter("dialog [name=reason]", "go"), enter("dialog [name=actor]", "eve"), click("dialog [data-send]"))
	one.says("dialog .problem", "The store does not answer.")
	s.down.Store(false)
	one.do(click("dialog [data-send]"))
	one.says(".events", "eve: go")
	for _, page := range []*tab{p, one} {
		page.do(front())
		page.until("document.querySelector('#live').textContent == 'Live' && !document.body.classList.contains('old')")
	}
}

func TestTooManyStreamsAreSaidAndTriedAgain(t *testing.T) {
	p, s := newTab(t), newSite(t, `
grants: [{principals: [bob@example.com], roles: [operator, candidate], elections: ["*"]}]
limits: [{principals: [bob@example.com], watchers: 1}]
`)
	s.lead("reports", "bob@example.com")
	p.open(s.url)
	p.says("[data-name=reports] .leader", "bob")
	second := p.another()
	second.open(s.url)
	second.says("#live", "Not connected")
	second.says("#age", "Trying again.", "You have 1 streams and long polls open")
	second.shot("too-many-streams")
	// A page in the background gives up its stream, and says how old it is when it is back.
	behind := func(is bool) {
		get[bool](p, "Object.defineProperty(document, 'hidden', {value: %t, configurable: true}), document.dispatchEvent(new Event('visibilitychange')), true", is)
	}
	behind(true)
	second.do(front())
	second.says("[data-name=reports] .leader", "bob")
	second.until("document.querySelector('#live').textContent == 'Live'")
	behind(false)
	p.do(front())
	p.says("#live", "Disconnected")
	p.says("#age", "What you see is", "You have 1 streams and long polls open")
	second.open("about:blank")
	p.do(front())
	p.until("document.querySelector('#live').textContent == 'Live'")
}

// A visitor that reads the list, for no stream has what it may see, owes a call for every 20
// elections of a page.
func TestAListThatIsMoreThanAVisitorMayReadAtOnceIsReadOn(t *testing.T) {
	p, s := newTab(t), newSite(t, `
grants:
- {principals: [bob@example.com], roles: [admin, operator, candidate], elections: ["*"], candidates: ["*"]}
- {principals: [ann@example.com], roles: [observer], elections: ["job-*"]}
limits: [{principals: [ann@example.com], reads: 10}, {principals: [bob@example.com], campaigns: 5000, elections: 5000}]
`)
	for i := range 1500 {
		s.lead(fmt.Sprintf("job-%04d", i), "x1")
	}
	s.who.Store(ann)
	p.open(s.url)
	p.says(".tools [role=status]", "1000 of 1500")
	p.until("document.querySelector('#live').textContent == 'Live'")
}

func TestAStreamThatEndsIsResumedWithoutALoss(t *testing.T) {
	p, s := newTab(t), newProcess(t, "--stream-limit", time.Second.String())
	s.start()
	callAt(t, s.url, "POST", "a:acquire", `{"candidateId":"ann","leaseDuration":"10m"}`)
	p.open(s.url)
	p.says("[data-name=a] .leader", "ann")
	get[bool](p, "window.began = performance.now(), window.lost = '', new MutationObserver(() => { const s = document.querySelector('#live').textContent; if (s != 'Live') window.lost = s }).observe(document.querySelector('#live'), {childList: true, subtree: true, characterData: true}), true")
	for _, name := range []string{"b", "c", "d"} {
		callAt(t, s.url, "POST", name+":acquire", `{"candidateId":"ann","leaseDuration":"10m"}`)
		p.says("[data-name="+name+"] .leader", "ann")
		p.until("performance.now() - window.began > 1500 && (window.began = performance.now())") // the stream has ended meanwhile
	}
	if lost := get[string](p, "window.lost"); lost != "" {
		t.Errorf("the page said %q, though the server only asked it to open the stream again", lost)
	}
}

func TestWhatIsNoLongerInTheStoreIsNoLongerShown(t *testing.T) {
	p, s := newTab(t), newProcess(t, "--store", "memory:")
	acquire := func(election, candidate string) {
		t.Helper()
		callAt(t, s.url, "POST", election+":acquire", `{"candidateId":"`+candidate+`","leaseDuration":"1h"}`)
	}
	s.start()
	acquire("gone", "ann")
	acquire("reports", "ann")
	callAt(t, s.url, "POST", "reports:pause", `{"for":"1h","reason":"before","actor":"eve"}`)
	p.open(s.url)
	p.until("%s == 'gone reports'", names)
	one := p.another()
	one.open(s.url + "/ui/elections/reports")
	one.says(".events", "eve: before")
	s.stop()
	for _, page := range []*tab{p, one} {
		page.says("#live", "Disconnected")
	}
	s.start() // with nothing that was there before
	acquire("reports", "bob")
	p.do(front())
	p.until("%s == 'reports'", names)
	p.says("[data-name=reports] .leader", "bob")
	one.do(front())
	one.says(".hero", "bob", "token 1")
	one.until("!document.querySelector('.events').textContent.includes('eve: before')")
	one.says(".events", "bob")
}

func TestAReplyThatNeverComesIsSaidAndHoldsNothingUp(t *testing.T) {
	p, s := newTab(t), newSite(t, "")
	s.lead("reports", "ann")
	p.open(s.url + "/ui/elections/reports")
	p.says("#members", "ann")
	p.says("#live", "Live")
	s.hang("GET", "/members")
	s.post("reports:pause", `{"for":"1h","reason":"x","actor":"eve"}`)
	p.says("#age", "What you see is", "A read gets no answer. If many windows of this page are open, close some")
	p.until("document.body.classList.contains('old')")
	s.post("reports:resume", `{"reason":"x","actor":"eve"}`)
	s.post("reports:release", as("ann", 1, ""))
	s.lead("reports", "bob")
	p.says(".hero", "bob", "token 2") // although that read hangs still
	s.hang("", "")
	p.says("#members", "bob")
	p.until("document.querySelector('#live').textContent == 'Live' && !document.body.classList.contains('old')")
}

// later moves the clock of the page on by ten minutes.
const later = `(() => { for (const c of [performance, Date]) { const now = c.now.bind(c); c.now = () => now() + 600000 } return true })()`

func TestAPromisedEndIsThatOfTheReading(t *testing.T) {
	p, s := newTab(t), newSite(t, "")
	s.lead("reports", "ann")
	s.post("reports:evict", `{"reason":"slow","actor":"eve"}`)
	p.open(s.url + "/ui/elections/reports")
	p.says(".ends", "The term ends by", "in 59 min")
	p.do(click(p.orders("assign")), enter("dialog [name=candidateId]", "bob"))
	p.says("dialog .says", "ann goes on until the end that it was promised", "in 59 min")
	s.hang("GET", "")
	get[bool](p, later)
	p.says("dialog .says", "in 49 min")
	p.says(".ends", "in 49 min")
	p.do(click("dialog [type=button]"), click(p.orders("evict")))
	p.says("dialog .says", "in 49 min")
	for range 5 {
		get[bool](p, later)
	}
	p.says("dialog .says", "The end that ann was promised has passed")
}

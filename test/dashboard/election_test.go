package dashboard

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// story makes an election that has all that a page can show: terms with reasons, members, a line, a
// report, an order, a checkpoint, a journal and elections below.
func story(s *site) {
	s.call("PUT", "planner", `{"description":"plans the day"}`)
	s.lead("planner", "agent-1")
	s.post("planner:release", as("agent-1", 1, ""))
	s.lead("planner", "agent-2")
	s.post("planner:stepDown", as("agent-2", 2, `,"reason":"out of memory"`))
	s.lead("planner", "agent-3")
	s.post("planner:approve", `{"fencingToken":3,"newEpoch":true,"reason":"the second phase","actor":"ann"}`)
	s.post("planner:ban", `{"candidateId":"agent-2","for":"24h","reason":"its disk fails","actor":"ann"}`)
	leader := func(more string) string { return as("agent-3", 4, more) }
	s.post("planner:renew", leader(`,"report":{"progress":412,"eta":"20m","health":"ok"}`))
	s.call("PUT", "planner/checkpoint", leader(`,"sequence":1,"task":"chapter 2","data":{"next":4}`))
	s.post("planner/journal:open", leader(""))
	s.post("planner/journal:append", leader(`,"after":0,"entries":[{"data":1},{"data":2}]`))
	s.post("planner:delegate", leader(`,"child":"invoices"`))
	s.lead("planner.invoices", "worker-17")
	s.post("planner:join", `{"candidateId":"node-2","role":"follower","ttl":"5m","seenToken":1,"note":"a replica"}`)
}

// wait lets a candidate wait in line until the end of the test.
func wait(t *testing.T, s *site, election, candidate string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/elections/"+election+":acquire", strings.NewReader(fmt.Sprintf(`{"candidateId":%q,"key":%q,"wait":"60s"}`, candidate, key2)))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	done := make(chan struct{})
	go func() {
		defer close(done)
		if answer, err := http.DefaultClient.Do(r); err == nil {
			answer.Body.Close()
		}
	}()
	t.Cleanup(func() { <-done }) // the context has ended by then
}

func TestOneElectionShowsAllThatIsKnownOfIt(t *testing.T) {
	p, s := newTab(t), newSite(t, "")
	story(s)
	wait(t, s, "planner", "agent-9")
	p.open(s.url + "/ui/elections/planner")
	p.says(".hero", "agent-3", "token 4", "plans the day", "59 min")
	p.says(".title", "Leads")
	p.says("#overrides", "ban", "agent-2", "ann: its disk fails")
	p.says("#members", "node-2", "follower", "#1", "a replica", "agent-9", "1. in line", "diverged")
	p.says("#report", "412", "20m", "health")
	p.says("#checkpoint", "chapter 2", `"next": 4`, "by agent-3, token 4")
	p.says("#journal", "Last index2")
	p.says("#tree", "planner.invoices", "worker-17")
	p.says(".events", "acquired", "banned", "ann: its disk fails", "delegated", "epoch", "configured")

	for _, row := range []string{"#4agent-3leads", "#3agent-3new epoch: the second phase (ann)", "#2agent-2released: out of memory", "#1agent-1released"} {
		p.until("[...document.querySelectorAll('[aria-label=Terms] tbody tr')].some(e => e.textContent.startsWith(%q))", row)
	}
	p.until("document.querySelectorAll('.terms .term').length == 4 && document.querySelectorAll('.terms .past').length == 3")
	p.until("document.querySelector('.terms').ariaLabel.startsWith('4 terms since')")

	p.until("document.querySelector('[aria-label=Candidate]').value") // one is suggested, once
	explain := func(candidate string, texts ...string) {
		t.Helper()
		get[bool](p, "document.querySelector('[aria-label=Candidate]').value = ''; true")
		p.do(enter("[aria-label=Candidate]", candidate+"\r"))
		p.says("#explain", texts...)
	}
	explain("agent-3", "agent-3 leads")
	explain("agent-2", "BANNED", "by ann", "its disk fails", "more")
	s.post("planner:ban", `{"candidateId":"writer-*","for":"1h","reason":"its version","actor":"ann"}`)
	p.says("#overrides", "writer-*")
	explain("writer-7", "BANNED", "as each candidate of writer-*", "its version")
	explain("agent-9", "HELD", "another candidate leads", "agent-3 leads")

	// The first entries of the journal give way to a snapshot, which the page learns as it opens.
	s.call("PUT", "planner/journal/snapshot", as("agent-3", 4, `,"upTo":1,"data":{}`))
	p.do(chromedp.Reload())
	p.says("#journal", "Last index2", "Snapshot up to1")

	// What happens next is shown without a reload, and the drawing goes on.
	s.post("planner:renew", as("agent-3", 4, `,"report":{"progress":500,"health":"tired"}`))
	p.says("#report", "500", "tired")
	s.post("planner:release", as("agent-3", 4, ""))
	p.says(".hero", "agent-9", "token 5")
	p.until("document.querySelectorAll('.terms .term').length == 5")
	if !get[bool](p, "[...document.querySelectorAll('.terms .term')].every(e => parseFloat(e.style.left) + parseFloat(e.style.width) < 100.01)") {
		t.Error("a term is drawn beyond the frame")
	}
	p.shot("planner")
	p.do(click("#tree a"))
	p.says("h1", "planner.invoices")
	p.says(".hero", "worker-17", "Stands on", "planner #4")
	p.do(click("nav a"))
	p.says("[data-name=planner] .leader", "agent-9")
}

func TestAnElectionThatDoesNotExistYetAppears(t *testing.T) {
	p, s := newTab(t), newSite(t, "")
	p.open(s.url + "/ui/elections/later")
	p.says(".hero .problem", "later")
	p.says(".title", "Does not exist")
	p.says("#orders-note", "Orders need an election, and this one does not exist.")
	p.until("!document.querySelector('main').textContent.includes('Reading…')")
	s.call("PUT", "later", "{}")
	p.says(".title", "Never led")
	p.until("!document.querySelector('.hero .none')")
	s.lead("later", "ann")
	p.says(".hero", "ann", "token 1")
	p.until("!document.querySelector('.hero .problem').textContent")
	for _, wrong := range []string{"NO%20NAME", "%FF"} {
		p.open(s.url + "/ui/elections/" + wrong)
		p.says("main", "No such election")
	}
}

// give gives an order by its button, after the page has said what it will do.
func (p *tab) give(order string, will []string, fields ...step) {
	p.t.Helper()
	p.do(click("button[data-order=" + order + "]:not(:disabled)"))
	p.do(fields...)
	p.says("dialog .says", will...)
	p.do(enter("dialog [name=reason]", "why "+order), enter("dialog [name=actor]", "eve"), click("dialog [data-send]"))
	p.until("!document.querySelector('dialog')")
	p.says(".events", "eve: why "+order)
	p.until("document.activeElement.dataset.order == %q || document.activeElement == document.body", order)
}

func TestEachOrderSaysWhatItWillDoUntilWhenAndIsGivenWithItsReason(t *testing.T) {
	p, s := newTab(t), newSite(t, "")
	s.call("PUT", "reports", `{"policy":{"approval":{"every":"20h"}}}`)
	s.lead("reports", "ann")
	p.open(s.url + "/ui/elections/reports")
	p.says(".orders", "Resume needs a pause.")
	p.give("pause", []string{"no candidate is granted the lease", "(in 10 min)", "The present leader goes on: to end its term, too, choose drain, or evict it."})
	p.says("#overrides", "pause", "eve: why pause")
	p.until("!document.querySelector('[data-order=resume]').disabled")
	p.give("resume", []string{"The pause ends now"})
	p.says("#overrides", "None stands.")
	p.give("ban", []string{"bob is not granted the lease", "(in 2 h)"}, enter("dialog [name=candidateId]", "bob"),
		replace("dialog [name=for]", "2h"))
	p.do(click("[data-lift]"))
	p.says("dialog .says", "The ban of bob ends now, and not at")
	p.do(enter("dialog [name=reason]", "why lift"), enter("dialog [name=actor]", "eve"), click("dialog [data-send]"))
	p.says(".events", "eve: why lift")
	p.says("#overrides", "None stands.")
	p.give("approve", []string{"ann, the leader of token 1, may go on", "under the next token"}, click("dialog [name=newEpoch]"))
	p.says(".hero", "token 2")
	p.give("assign", []string{"only bob is granted the lease", "The present term ends. ann goes on until the end that it was promised", "(in 10 min)"}, enter("dialog [name=candidateId]", "bob"))
	p.says(".ends", "The term ends by", "handOver", "bob is to lead next")
	p.give("evict", []string{"The present term ends.", "ann goes on until", "It is not granted the lease again before", "Nothing takes an eviction back."}, enter("dialog [name=ban]", "1h"))
	p.says(".ends", "evicted")
	p.says("#overrides", "ban", "ann")
}

func TestARefusedOrderSaysWhyAndKeepsTheDialogOpen(t *testing.T) {
	p, s := newTab(t), newSite(t, "")
	s.lead("reports", "ann")
	p.open(s.url + "/ui/elections/reports")
	p.do(click(p.orders("pause")), replace("dialog [name=for]", "999999999999h"))
	p.says("dialog .says", "Until … no candidate")
	p.do(enter("dialog [name=reason]", "go"), enter("dialog [name=actor]", "eve"), click("dialog [data-send]"))
	p.says("dialog .problem", "For must be")
	p.until("document.querySelector('dialog [name=reason]').value == 'go' && !document.querySelector('dialog [data-send]').disabled")
	p.shot("refused")
	p.do(click("dialog [type=button]"))
	p.until("!document.querySelector('dialog')")
	// The browser itself refuses an order without a reason, and a duration that is none.
	p.do(click(p.orders("pause")), click("dialog [data-send]"))
	p.until("document.querySelector('dialog [name=reason]').matches(':invalid')")
	p.do(enter("dialog [name=reason]", "   "))
	p.until("document.querySelector('dialog [name=reason]').matches(':invalid')")
	p.do(enter("dialog [name=for]", "x"))
	p.until("document.querySelector('dialog [name=for]').matches(':invalid')")
	p.do(replace("dialog [name=for]", "1500ms"))
	p.until("document.querySelector('dialog [name=for]').matches(':valid')")
	// An order about a term that ends meanwhile would do nothing, and the page says so.
	p.do(click("dialog [type=button]"))
	p.do(click(p.orders("evict")), enter("dialog [name=reason]", "slow"), enter("dialog [name=actor]", "eve"))
	s.post("reports:release", as("ann", 1, ""))
	s.lead("reports", "bob")
	p.says(".hero", "token 2")
	p.says("dialog .problem", "The term of token 1 has ended meanwhile: bob leads with token 2.")
	p.until("document.querySelector('dialog [data-send]').disabled")
	p.do(click("dialog [type=button]"), click(p.orders("evict")), enter("dialog [name=reason]", "slow"), enter("dialog [name=actor]", "eve"))
	s.post("reports:release", as("bob", 2, ""))
	p.says("dialog .problem", "The term of token 2 has ended meanwhile: no candidate leads.")
	p.until("document.querySelector('dialog [data-send]').disabled")
	p.do(click("dialog [type=button]"))
	p.says("#orders-note", "Evict needs a leader. Resume needs a pause. Approve needs a leader, a parked election, or a policy that asks for approvals.")
}

func TestAnOrderThatGetsNoAnswerIsTakenBackAndSaysWhatMayHaveHappened(t *testing.T) {
	p, s := newTab(t), newSite(t, "")
	s.lead("reports", "ann")
	p.open(s.url + "/ui/elections/reports")
	p.says("#overrides", "None stands.")
	get[bool](p, `(() => { // the time for an order is over when the test says so
		const timeout = AbortSignal.timeout.bind(AbortSignal); window.late = new AbortController()
		AbortSignal.timeout = ms => ms == 30000 ? window.late.signal : timeout(ms); return true })()`)
	const mayBe = "The order may have been carried out if it was sent."
	s.hang("POST", ":pause")
	p.do(click(p.orders("pause")), enter("dialog [name=reason]", "go"), enter("dialog [name=actor]", "eve"), click("dialog [data-send]"))
	p.says("dialog [role=status]", "Waiting for the answer of the server")
	p.until("document.querySelector('dialog [data-send]').disabled")
	p.do(click("dialog [type=button]")) // Cancel
	p.says("dialog .problem", "Cancelled.", mayBe)
	p.until("!document.querySelector('dialog [role=status]').textContent && !document.querySelector('dialog [data-send]').disabled")
	p.do(click("dialog [data-send]"))
	p.says("dialog [role=status]", "Waiting for the answer of the server")
	get[bool](p, "window.late.abort(), true")
	p.says("dialog .problem", "The server does not answer within 30 s.", mayBe)
	p.do(click("dialog [type=button]"))
	p.until("!document.querySelector('dialog')")
	// The browser has let both go: they are not carried out when the server answers again.
	s.hang("", "")
	get[bool](p, "window.late = new AbortController(), true")
	p.give("ban", nil, enter("dialog [name=candidateId]", "bob"))
	p.says("#overrides", "ban")
	if got := s.call("GET", "reports/overrides", ""); strings.Contains(got, "pause") {
		t.Errorf("an order that was cancelled stands: %s", got)
	}
}

func TestTheHeadOfAnElectionSaysThatItIsReadOnlyOrPaused(t *testing.T) {
	p, s := newTab(t), newSite(t, "")
	fill(s)
	p.open(s.url + "/ui/elections/cluster")
	p.says(".title", "Leads, read-only")
	p.open(s.url + "/ui/elections/lock")
	p.says(".title", "Paused, no leader")
	p.open(s.url + "/ui/elections/backups")
	p.says(".title", "Leads")
	s.post("backups:pause", `{"for":"5m","reason":"the database moves","actor":"ann"}`)
	p.says(".title", "Leads, paused")
	// A pause that runs out goes, though no event tells.
	s.hang("GET", "")
	p.until("(" + later + ", document.querySelector('.title .chip').textContent == 'Leads')") // again, for an answer that was on its way
	p.says("#orders-note", "Resume needs a pause.")
}

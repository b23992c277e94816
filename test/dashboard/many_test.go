package dashboard

import (
	"fmt"
	"strings"
	"testing"
)

func TestAnOrderForManyListsThemFirstGoesOnAfterAnErrorAndEndsWithATable(t *testing.T) {
	p, s := newTab(t), newSite(t, `
grants:
- {principals: [bob@example.com], roles: [observer, candidate], elections: ["*"], candidates: ["*"]}
- {principals: [bob@example.com], roles: [operator, admin], elections: ["jobs.*"]}
- {principals: [ann@example.com], roles: [observer], elections: ["*"]}
`)
	for i := range 5 {
		s.lead(fmt.Sprint("jobs.", i), "ann")
	}
	s.call("PUT", "jobs.5", "{}")
	s.lead("other", "ann")
	p.open(s.url)
	p.says("[data-name=other] .leader", "ann")
	p.until("document.querySelector('[aria-label=\"Select other\"]').disabled")
	p.do(click("[data-sort=name]"), click("[aria-label='Select all that are shown']"))
	p.says("[aria-label='Orders for the selected elections']", "6 selected")
	row := func(election, result string) {
		t.Helper()
		p.until("[...document.querySelectorAll('dialog tbody tr')].some(e => e.textContent.startsWith(%q))", election+result)
	}

	p.do(click(p.orders("evict")))
	p.says("dialog h2", "Evict 5 elections")
	p.says("dialog .says", "For each of them: The present term ends. Each leader goes on until the end that it was promised.")
	p.says("dialog [role=status]", "6 elections: 5 to be done, 1 skipped.")
	row("jobs.0", "annto be done")
	row("jobs.5", "–skipped: Evict needs a leader.")
	p.do(click("dialog [data-send]"))
	p.until("document.querySelector('dialog [name=reason]').matches(':invalid')")
	s.post("jobs.1:release", as("ann", 1, ""))
	s.lead("jobs.1", "cid")
	p.says("[data-name='jobs.1'] .token", "#2")
	p.do(enter("dialog [name=reason]", "moving"), click("dialog [data-send]"))
	p.says("dialog [role=status]", "6 elections: 4 done, 2 skipped.")
	row("jobs.0", "anndone")
	row("jobs.1", "annskipped: The term of token 1 has ended meanwhile: cid leads with token 2.")
	p.focused("e.textContent == 'Close'")
	p.do(click("dialog [type=button]"))
	p.says("[data-name='jobs.0'] .state", "Ends: evicted")
	p.says("[data-name='jobs.1'] .state", "Leads")

	p.do(click(p.orders("pause")))
	p.says("dialog [role=status]", "6 elections: 6 to be done.")
	p.focused("e.name == 'for'")
	s.call("DELETE", "jobs.5", "")
	p.do(enter("dialog [name=reason]", "the queue moves"), click("dialog [data-send]"))
	p.says("dialog [role=status]", "6 elections: 5 done, 1 failed.")
	row("jobs.5", "–failed: ")
	for _, width := range []int64{320, 1200} {
		p.width(width)
		p.fits("an order for many")
		p.axe("an order for many")
		p.shot(fmt.Sprint("many-", width))
	}
	if got := s.call("GET", "jobs.4/overrides", ""); !strings.Contains(got, "the queue moves") || !strings.Contains(got, "bob@example.com") {
		t.Errorf("the order does not stand with its reason and its actor: %s", got)
	}
	p.do(click("dialog [type=button]"))

	// Four are under way at a time. An order without an answer, or not sent, may be given again.
	p.says("[aria-label='Orders for the selected elections']", "5 selected")
	s.hang("POST", ":resume")
	p.do(click(p.orders("resume")), enter("dialog [name=reason]", "moved"), click("dialog [data-send]"))
	p.says("dialog [role=status]", "Waiting for the answer of the server")
	p.do(click("dialog [type=button]"))
	p.says("dialog [role=status]", "5 elections: 4 failed, 1 not tried.")
	row("jobs.0", "annfailed: Cancelled. The order may have been carried out if it was sent.")
	s.hang("", "")
	p.says("dialog [data-send]", "Try the rest again")
	p.do(click("dialog [data-send]"))
	p.says("dialog [role=status]", "5 elections: 5 done.")
	p.do(click("dialog [type=button]"))
	if got := s.call("GET", "jobs.4/overrides", ""); strings.Contains(got, "pause") {
		t.Errorf("the pause still stands: %s", got)
	}

	s.who.Store(ann)
	p.open(s.url)
	p.says("[data-name=other] .leader", "ann")
	p.until("!document.querySelector('[type=checkbox], [data-order]')")
}

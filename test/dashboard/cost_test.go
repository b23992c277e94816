package dashboard

import (
	"fmt"
	"testing"
	"time"

	"regent/leadership/instance"
)

// settle waits until the pages have asked for all that they show, and returns the calls of the
// store since the last time.
func settle(s *site, pages ...*tab) map[string]int {
	for _, p := range pages {
		p.do(front())
		p.until("performance.now() - Math.max(0, ...performance.getEntriesByType('resource').map(e => e.responseEnd)) > 1500")
	}
	return s.calls.Take()
}

// reads is how often one record may be read in that time, however many ask: the answer is kept.
func reads(elapsed time.Duration) int { return 1 + int(elapsed/instance.DefaultCacheExpiry) }

func TestTheStoreIsNotAskedForEachVisitorOfTheFleet(t *testing.T) {
	p, s := newTab(t), newSite(t, "")
	for _, name := range []string{"a", "b", "c"} {
		s.lead(name, "ann")
	}
	pages := []*tab{p, p.another(), p.another(), p.another()}
	for _, p := range pages {
		p.open(s.url)
		p.says("[data-name=a] .leader", "ann")
	}
	settle(s, pages...)
	began := time.Now()
	s.post("a:release", as("ann", 1, ""))
	s.lead("a", "bob")
	for _, p := range pages {
		p.do(front())
		p.says("[data-name=a] .leader", "bob")
	}
	calls := settle(s, pages...)
	// The lease and the members of each of the three, after each of the two events.
	if most := 2 * 3 * reads(time.Since(began)); calls["Get"] > most || calls["List"]+calls["Events"]+calls["Look"]+calls["Segments"] > 0 {
		t.Errorf("two events, seen by %d visitors, cost %v; of get %d at most, of the others none", len(pages), calls, most)
	}
	t.Logf("two events, seen by %d visitors: %v", len(pages), calls)
}

func TestAnEventOfOneElectionReadsWhatItMayChange(t *testing.T) {
	p, s := newTab(t), newSite(t, "")
	s.call("PUT", "a", `{"policy":{"approval":{"every":"10h"}}}`)
	s.lead("a", "ann")
	// The other parts have a time of their own: a page that is slow to open is opened again.
	for open := true; open; open = get[bool](p, "performance.now() > 25000") {
		p.open(s.url + "/ui/elections/a")
		p.says("#tree", "None.")
		settle(s, p)
		get[bool](p, "window.began = performance.now(), true")
		s.post("a:requestApproval", as("ann", 1, `,"note":"is this right?"`))
		p.says(".events", "approvalRequested")
		p.until("performance.getEntriesByType('resource').some(e => e.startTime > window.began && e.name.endsWith('/members'))")
		settle(s, p)
	}
	asked := get[string](p, "[...new Set(performance.getEntriesByType('resource').filter(e => e.startTime > window.began).map(e => new URL(e.name).pathname).filter(p => p.startsWith('/v1/')))].sort().join(' ')")
	if want := "/v1/elections/a /v1/elections/a/members"; asked != want {
		t.Errorf("after an event the page asked for %s, want %s", asked, want)
	}
}

func TestAThousandElectionsStaySmoothUnderEvents(t *testing.T) {
	p, s := newTab(t), newSite(t, "")
	name := func(i int) string { return fmt.Sprintf("job-%03d", i) }
	for i := range 1000 {
		s.lead(name(i), "ann")
	}
	p.open(s.url)
	p.says(".tools [role=status]", "1000 of 1000")
	p.do(click("[data-sort=name]"))
	p.says("[data-name=job-000] .leader", "ann")
	settle(s, p)

	// Every fifth election changes hands. Only what is in view is written, no row is made anew, and
	// none is moved.
	get[bool](p, `window.rows = 0, window.writes = new Map(), new MutationObserver(all => { for (const m of all) {
		for (const n of [...m.addedNodes, ...m.removedNodes]) if (n.role === 'row') window.rows++;
		const row = m.target.closest?.('[role=row]')?.dataset.name ?? m.target.parentElement?.closest('[role=row]')?.dataset.name;
		if (row) window.writes.set(row, (window.writes.get(row) ?? 0) + 1);
	} }).observe(document.querySelector('.body'), {subtree: true, childList: true, attributes: true, characterData: true}), true`)
	for i := 0; i < 1000; i += 5 {
		s.post(name(i)+":release", as("ann", 1, ""))
		s.lead(name(i), "bob")
	}
	last := name(995)
	p.says("[data-name=job-000] .leader", "bob")
	p.do(enter("input[type=search]", last))
	p.says("[data-name="+last+"] .leader", "bob")
	p.shot("thousand")
	written, wrote := get[int](p, "window.writes.size"), get[int](p, "Math.max(...window.writes.values())")
	if inView := 60; written > inView {
		t.Errorf("%d rows were written, of %d that can be seen", written, inView)
	}
	if moved := get[int](p, "window.rows"); moved > 999 { // that the search takes away
		t.Errorf("%d rows were put in or taken out, want 999", moved)
	}
	t.Logf("400 events: %d rows written, at most %d writes in one", written, wrote)
}

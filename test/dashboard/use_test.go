package dashboard

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

func TestThePageIsUsedByTheKeyboardAlone(t *testing.T) {
	p, s := newTab(t), newSite(t, "")
	s.lead("reports", "ann")
	s.lead("mail", "mx")
	p.open(s.url)
	p.says("[data-name=reports] .leader", "ann")
	p.says("[data-name=mail] .leader", "mx")
	tab := func(to string) { t.Helper(); p.do(keys(kb.Tab)); p.focused(to) }
	tab("e.matches('.brand')")
	for _, filter := range []string{"all", "vacant", "readOnly", "approval", "flapping"} {
		tab(fmt.Sprintf("e.dataset.filter == %q", filter))
	}
	p.do(keys(kb.Enter)) // filters by flapping
	p.until("%s == ''", names)
	tab("e.matches('[type=search]')")
	for _, column := range []string{"state", "name", "leader", "token", "left", "line", "changed"} {
		tab(fmt.Sprintf("e.dataset.sort == %q", column))
	}
	p.do(keys(kb.Enter))
	get[bool](p, "document.querySelector('[data-filter=all]').focus(); true")
	p.do(keys(" ")) // a button is pressed by the space bar, too
	p.until("%s == 'mail reports'", names)
	get[bool](p, "document.querySelector('[type=search]').focus(); true")
	tab("e.ariaLabel == 'Select all that are shown'")
	get[bool](p, "document.querySelector('[data-sort=changed]').focus(); true")
	tab("e.ariaLabel == 'Select mail'")
	tab("e.closest('[data-name=mail] a')")
	tab("e.ariaLabel == 'Select reports'")
	p.do(keys(" "))
	p.says("[aria-label='Orders for the selected elections']", "1 selected")
	tab("e.closest('[data-name=reports] a')")
	// A row that moves keeps the focus.
	s.post("reports:release", as("ann", 1, ""))
	p.says("[data-name=reports] .state", "No leader")
	p.until("%s == 'reports mail'", names)
	p.focused("e.closest('[data-name=reports]')")
	s.lead("reports", "ann")
	p.do(keys(kb.Enter))
	p.says("h1", "reports")
	p.says(".hero", "ann", "token 2")

	p.until("!document.querySelector('[data-order=assign]').disabled")
	tab("e.matches('.brand')")
	tab("e.matches('nav a')")
	tab("e.dataset.order == 'assign'")
	tab("e.dataset.order == 'evict'")
	tab("e.dataset.order == 'pause'")
	p.do(keys(kb.Enter))
	p.until("document.querySelector('dialog').open")
	p.focused("e.name == 'for'")
	p.do(keys(kb.Escape))
	p.until("!document.querySelector('dialog')")
	p.focused("e.dataset.order == 'pause'")
	p.do(keys(kb.Enter))
	p.focused("e.name == 'for'")
	tab("e.name == 'mode'")
	tab("e.name == 'reason'")
	p.do(keys("by hand"))
	tab("e.name == 'actor'")
	p.do(keys("eve" + kb.Enter)) // Enter gives the order
	p.says("#overrides", "eve: by hand")
	p.until("!document.querySelector('dialog')")
	p.focused("e.dataset.order == 'pause'")
	tab("e.dataset.order == 'resume'")
}

func TestNothingKeepsPeopleFromUsingThePage(t *testing.T) {
	p, s := newTab(t), newSite(t, "")
	fill(s)
	story(s)
	one := p.another()
	one.open(s.url + "/ui/elections/planner")
	p.do(front())
	p.open(s.url)
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1200, 700, 400, 320} {
			of := fmt.Sprintf("%s-%d", scheme, width)
			p.do(front())
			p.width(width)
			p.scheme(scheme)
			p.says("[data-name=cluster] .state", "Read-only")
			p.fits("fleet-" + of)
			p.shot("fleet-" + of)
			one.do(front())
			one.width(width)
			one.scheme(scheme)
			one.says("#tree", "planner.invoices")
			one.fits("election-" + of)
			one.shot("election-" + of)
			if width == 700 || width == 320 {
				continue
			}
			one.axe("election-" + of)
			one.do(click(one.orders("evict")))
			one.until("document.querySelector('dialog').open")
			one.fits("dialog-" + of)
			one.shot("dialog-" + of)
			one.axe("dialog-" + of)
			one.do(keys(kb.Escape))
			one.until("!document.querySelector('dialog')")
			p.do(front())
			p.axe("fleet-" + of)
		}
	}
}

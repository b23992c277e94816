package dashboard

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/httpapi/access/authn/issuertest"
)

const audience = "https://regent.test"

// newGuarded starts a process that verifies its callers, by tokens of the issuer.
func newGuarded(t *testing.T, access string) (*running, *issuertest.Issuer) {
	t.Helper()
	issuer := issuertest.Start(t)
	file := filepath.Join(t.TempDir(), "access.yaml")
	require.NoError(t, os.WriteFile(file, []byte(access), 0o600))
	s := newProcess(t, "--auth", "oidc", "--auth-issuer", issuer.URL(), "--auth-audience", audience, "--access", file)
	s.start()
	return s, issuer
}

func TestAVisitorWithoutATokenIsToldHowToSignInAndOneWithAProxyIsLetIn(t *testing.T) {
	p := newTab(t)
	s, issuer := newGuarded(t, `
grants:
- {principals: [ann@example.com], roles: [operator, candidate], elections: ["*"]}
- {principals: [carl@example.com], roles: [candidate], elections: ["reports"]}
`)
	p.open(s.url)
	p.says("#live", "Not signed in")
	p.says("h1", "Sign in")
	p.says("main", "a browser sends no credential by itself", "gcloud run services proxy", "Identity-Aware Proxy", "the role observer or operator")
	p.axe("the page for signing in")
	p.shot("sign-in")

	p.bearer(issuer.Token(audience, "ann@example.com"))
	p.open(s.url + "/ui/elections/reports")
	p.says("#visitor", "ann@example.com")
	get[bool](p, `fetch('/v1/elections/reports:acquire', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify({candidateId: 'ann@example.com', leaseDuration: '1h'})}).then(() => window.asked = true), true`)
	p.says(".hero", "ann@example.com", "token 1")
	p.do(click(p.orders("pause")), enter("dialog [name=reason]", "the database moves"))
	p.until("!document.querySelector('dialog [name=actor]')") // the server knows who it is
	p.do(click("dialog [data-send]"))
	p.says("#overrides", "ann@example.com: the database moves")

	// A token that is refused later is no disconnection to wait for.
	p.bearer(issuer.Token("https://another.test", "ann@example.com"))
	p.open(s.url)
	p.says("h1", "Sign in")

	p.bearer(issuer.Token(audience, "dan@example.com")) // whom the access file does not know
	p.open(s.url)
	p.says("h1", "Open an election")
	p.says("main", "You may not list elections")
	p.axe("the page for one election")
	p.do(enter("[name=election]", "reports\r"))
	p.says("main", "You may not read this election")
}

func TestAVisitorSeesWhatItsRoleAllowsAndWhyAButtonIsDisabled(t *testing.T) {
	p, s := newTab(t), newSite(t, `
grants:
- {principals: [bob@example.com], roles: [operator, candidate], elections: ["*"], candidates: ["*"]}
- {principals: [ann@example.com], roles: [observer], elections: ["team-a.*"]}
- {principals: [ann@example.com], roles: [operator], elections: ["team-a.mine"]}
`)
	s.lead("team-a.mine", "x1")
	s.lead("team-a.other", "x2")
	s.lead("team-b.secret", "x3")
	s.call("PUT", "team-a.other/checkpoint", as("x2", 1, `,"sequence":1,"data":{"secret":"of the leaders"}`))
	s.who.Store(ann)

	// The stream of all elections is not hers: the list shows those that are.
	p.open(s.url)
	p.says("#visitor", "ann@example.com")
	p.until("%s == 'team-a.mine team-a.other'", names)
	p.says("[data-name='team-a.other'] .leader", "x2")
	p.until("document.querySelector('#live').textContent == 'Live'")
	s.who.Store(bob)
	s.lead("team-a.third", "x4")
	s.who.Store(ann)
	p.says("[data-name='team-a.third'] .leader", "x4") // the list is read again

	p.open(s.url + "/ui/elections/team-a.other")
	p.says(".hero", "x2")
	p.says(".orders", "You may look; orders need the role operator.")
	p.until("[...document.querySelectorAll('[data-order]')].every(b => b.disabled && b.title == 'Your role does not allow this.')")
	p.says("#checkpoint", "Your role does not allow reading it.")
	p.says("#journal", "Your role does not allow reading it.")
	p.axe("an observer's page")
	p.shot("observer")

	p.open(s.url + "/ui/elections/team-a.mine")
	p.do(click(p.orders("pause")), enter("dialog [name=reason]", "mine"), click("dialog [data-send]"))
	p.says("#overrides", "ann@example.com: mine")

	p.open(s.url + "/ui/elections/team-b.secret")
	p.says("main", "You may not read this election")
}

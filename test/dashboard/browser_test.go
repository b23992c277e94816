package dashboard

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"regent/emulators/need"
)

// patience is how long a page may take to show something. No test takes so long unless it fails.
const patience = 60 * time.Second

// tab is a page in a browser of its own. A violation of the content security policy, an exception
// and an error that the script writes to the console fail the test.
type tab struct {
	t   *testing.T
	ctx context.Context
}

type step = chromedp.Action[chromedp.Void]

// newTab starts a browser.
func newTab(t *testing.T) *tab {
	t.Helper()
	need.Programs(t, "chromium")
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath("chromium"), chromedp.NoSandbox, chromedp.Flag("no-proxy-server", true), chromedp.WindowSize(1200, 900))
	ctx, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	return open(t, ctx)
}

// another opens one more page in the same browser.
func (p *tab) another() *tab {
	p.t.Helper()
	return open(p.t, p.ctx)
}

func open(t *testing.T, ctx context.Context) *tab {
	t.Helper()
	ctx, stop := chromedp.NewContext(ctx)
	t.Cleanup(stop)
	var mu sync.Mutex
	var wrong []string
	err := chromedp.Listen(ctx, func(event any) {
		text := ""
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			text = e.ExceptionDetails.Text
			if e.ExceptionDetails.Exception != nil {
				text += " " + e.ExceptionDetails.Exception.Description
			}
		case *log.EventEntryAdded: // refused requests are entries of the network
			if e.Entry.Source != log.EntrySourceNetwork && e.Entry.Level == log.EntryLevelError {
				text = e.Entry.Text
			}
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.ConsoleAPICalledTypeError {
				text = fmt.Sprint("console.error: ", len(e.Args), " values")
			}
		}
		if text != "" {
			mu.Lock()
			defer mu.Unlock()
			wrong = append(wrong, text)
		}
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		if wrong != nil {
			t.Errorf("the page has errors: %s", strings.Join(wrong, "; "))
		}
	})
	return &tab{t, ctx}
}

// do takes steps, one after the other.
func (p *tab) do(steps ...step) {
	p.t.Helper()
	ctx, stop := context.WithTimeout(p.ctx, 2*patience)
	defer stop()
	for _, s := range steps {
		if err := chromedp.Do(ctx, s); err != nil {
			text, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string]("document.body.innerText"))
			p.t.Fatalf("%v; the page says: %s", err, text)
		}
	}
}

func (p *tab) open(url string) { p.t.Helper(); p.do(chromedp.Navigate(url)) }

// until waits for a condition of the page.
func (p *tab) until(condition string, args ...any) {
	p.t.Helper()
	condition = fmt.Sprintf(condition, args...)
	poll := chromedp.Poll[bool]("Boolean("+condition+")", chromedp.WithPollingTimeout(patience))
	_, err := chromedp.Run(p.ctx, poll)
	for err != nil && (strings.Contains(err.Error(), "context") || strings.Contains(err.Error(), "navigated")) && p.ctx.Err() == nil { // another page has come
		_, err = chromedp.Run(p.ctx, poll)
	}
	if err != nil {
		text, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string]("document.body.innerText"))
		p.t.Fatalf("%s: %v; the page says: %s", condition, err, text)
	}
}

// says waits for texts in an element, the first that matches the selector.
func (p *tab) says(selector string, texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		p.until("document.querySelector(%q)?.textContent.includes(%q)", selector, text)
	}
}

// get returns the value of an expression.
func get[T any](p *tab, expression string, args ...any) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](fmt.Sprintf(expression, args...)))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

func click(selector string) step       { return chromedp.Click(selector) }
func enter(selector, text string) step { return chromedp.SendKeys(selector, text) }
func keys(text string) step            { return chromedp.KeyEvent(text) }
func (p *tab) width(pixels int64)      { p.t.Helper(); p.do(chromedp.EmulateViewport(pixels, 900)) }

func (p *tab) focused(expression string) {
	p.t.Helper()
	p.until("(e => %s)(document.activeElement)", expression)
}

func (p *tab) orders(kind string) (s string) {
	return fmt.Sprintf("button[data-order=%s]:not(:disabled)", kind)
}

// scheme lets the browser prefer light or dark pages.
func (p *tab) scheme(value string) {
	p.t.Helper()
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}}})
		return err
	}))
}

// bearer adds a token to each request, as a proxy before the server does.
func (p *tab) bearer(token string) {
	p.t.Helper()
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Authorization": "Bearer " + token}})
		return err
	}))
}

// shot keeps a screenshot of what is in view below .build/screenshots.
func (p *tab) shot(name string) {
	p.t.Helper()
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	require.NoError(p.t, err)
	const dir = "../../.build/screenshots"
	require.NoError(p.t, os.MkdirAll(dir, 0o755))
	require.NoError(p.t, os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644))
}

// axeCore is the text of axe-core, which npm gets once into .build, as the lock file says: it is
// too large, and under another license, to be kept here.
var axeCore = sync.OnceValues(func() (string, error) {
	const dir = "../../.build/axe"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	changed := false
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		if there, err := os.ReadFile(filepath.Join(dir, name)); err == nil && bytes.Equal(there, text) {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return "", err
		}
		changed = true
	}
	file := filepath.Join(dir, "node_modules", "axe-core", "axe.min.js")
	if _, err := os.Stat(file); err != nil || changed {
		install := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
		install.Dir = dir
		if out, err := install.CombinedOutput(); err != nil {
			os.Remove(filepath.Join(dir, "package.json")) // to try again
			return "", fmt.Errorf("npm cannot get axe-core: %w: %s", err, out)
		}
	}
	text, err := os.ReadFile(file)
	return string(text), err
})

// axe looks for what keeps people from using the page as it is.
func (p *tab) axe(of string) {
	p.t.Helper()
	text, err := axeCore()
	if err != nil {
		need.Lacks(p.t, err.Error())
	}
	get[bool](p, "window.axe ? true : (window.eval(%q), true)", text)
	get[bool](p, "window.found = undefined; axe.run().then(r => { window.found = r.violations.map(v => v.id + ': ' + v.nodes.map(n => n.target + ' ' + n.failureSummary).join(', ')).join('; ') || 'clean' }); true")
	p.until("window.found")
	if found := get[string](p, "window.found"); found != "clean" {
		p.t.Errorf("%s: %s", of, found)
	}
}

// fits checks that the page is not wider than the screen.
func (p *tab) fits(of string) {
	p.t.Helper()
	if wide := get[int](p, "document.documentElement.scrollWidth - innerWidth"); wide > 0 {
		p.t.Errorf("%s is %d pixels wider than the screen", of, wide)
	}
}

// front brings the page before the others.
func front() step {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, page.BringToFront, cdp.Empty{})
		return err
	})
}

// replace replaces what a field has.
func replace(selector, text string) step {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := chromedp.Evaluate[bool](fmt.Sprintf("(e => { e.value = %q; e.dispatchEvent(new Event('input', {bubbles: true})); return true })(document.querySelector(%q))", text, selector))(ctx, t)
		return err
	})
}

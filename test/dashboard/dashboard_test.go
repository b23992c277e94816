// Package dashboard drives the dashboard of a real server in Chromium. It is skipped if there is no
// Chromium, or fails if REGENT_REQUIRE_EMULATORS is 1.
package dashboard

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// server is a regent that can be stopped and started again on the same store.
type server struct {
	t                  *testing.T
	binary, store, url string
	cmd                *exec.Cmd
}

func newServer(t *testing.T) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close()
	s := &server{t: t, binary: filepath.Join(t.TempDir(), "regent"), store: "file:" + filepath.Join(t.TempDir(), "store"), url: "http://" + at}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", s.binary, "./cmd/regent")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(s.stop)
	return s
}

func (s *server) start() {
	s.t.Helper()
	s.cmd = exec.Command(s.binary, "serve", "--store", s.store, "--listen", strings.TrimPrefix(s.url, "http://"))
	s.cmd.Stderr = s.t.Output()
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for s.t.Context().Err() == nil {
		if r, err := http.Get(s.url + "/health/ready"); err == nil {
			r.Body.Close()
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (s *server) stop() {
	if s.cmd != nil {
		s.cmd.Process.Signal(os.Interrupt)
		s.cmd.Wait()
		s.cmd = nil
	}
}

func (s *server) post(path, body string) {
	s.t.Helper()
	r, err := http.Post(s.url+"/v1/elections/"+path, "application/json", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: status %d", path, r.StatusCode)
	}
}

func browser(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("REGENT_REQUIRE_EMULATORS") == "1" {
			t.Fatal("there is no chromium, and REGENT_REQUIRE_EMULATORS is 1; install it, as with: apt-get install chromium")
		}
		t.Skip("SKIPPED, NOT PROVED: there is no chromium. With REGENT_REQUIRE_EMULATORS=1 this is an error.")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Flag("no-proxy-server", true), chromedp.WindowSize(1200, 800))
	ctx, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	ctx, stop = context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(stop)
	return ctx
}

type step = chromedp.Action[chromedp.Void]

func run(t *testing.T, ctx context.Context, actions ...step) {
	t.Helper()
	if err := chromedp.Do(ctx, actions...); err != nil {
		text, _ := chromedp.Run(ctx, chromedp.Text("body"))
		t.Fatalf("%v; the page says: %s", err, text)
	}
}

// says waits until the page has a text.
func says(text string) step {
	poll := chromedp.Poll[bool](fmt.Sprintf("document.body.innerText.includes(%q)", text), chromedp.WithPollingTimeout(20*time.Second))
	return func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := poll(ctx, t)
		return chromedp.Void{}, err
	}
}

// shot keeps a screenshot of the page below .build/screenshots.
func shot(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatal(err)
	}
	const dir = "../../.build/screenshots"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestThePageFollowsElectionsOverARestartOfTheServer(t *testing.T) {
	ctx, s := browser(t), newServer(t)
	s.start()
	s.post("reports:acquire", `{"candidateId":"ann","leaseDuration":"10m"}`)
	run(t, ctx, chromedp.Navigate(s.url), says("ann"), says("Live"))
	s.post("backups:acquire", `{"candidateId":"bob","leaseDuration":"1h"}`)
	run(t, ctx, says("bob"))
	axe(t, ctx)
	shot(t, ctx, "fleet")
	run(t, ctx, dark())
	axe(t, ctx)
	shot(t, ctx, "fleet-dark")
	s.stop()
	run(t, ctx, says("Disconnected: what you see is"))
	s.start()
	s.post("mail:acquire", `{"candidateId":"cid"}`)
	run(t, ctx, says("Live"), says("cid"))
}

func TestAnOrderSaysWhatWillHappenAndIsGivenWithItsReason(t *testing.T) {
	ctx, s := browser(t), newServer(t)
	s.start()
	s.post("reports:acquire", `{"candidateId":"ann","leaseDuration":"10m"}`)
	give := func(order string, fields ...step) {
		t.Helper()
		run(t, ctx, chromedp.Click("button[data-order="+order+"]:not(:disabled)"), chromedp.WaitVisible("dialog"))
		run(t, ctx, fields...)
		run(t, ctx, chromedp.SendKeys("dialog [name=reason]", "why "+order), chromedp.SendKeys("dialog [name=actor]", "eve"),
			chromedp.Click("dialog [data-send]"), chromedp.WaitNotPresent("dialog"), says("why "+order))
	}
	run(t, ctx, chromedp.Navigate(s.url+"/ui/elections/reports"), says("ann"))
	give("pause", says("no candidate is granted the lease"))
	give("resume", says("The pause ends now"))
	give("ban", says("is not granted the lease"), chromedp.SendKeys("dialog [name=candidateId]", "bob"))
	run(t, ctx, chromedp.Click("button[data-lift]"), chromedp.SendKeys("dialog [name=reason]", "why lift"), chromedp.SendKeys("dialog [name=actor]", "eve"),
		chromedp.Click("dialog [data-send]"), chromedp.WaitNotPresent("dialog"), says("why lift"))
	// A refusal is readable, and the dialog stays open: this election needs no approval.
	run(t, ctx, chromedp.Click("button[data-order=approve]"), chromedp.SendKeys("dialog [name=reason]", "go"), chromedp.SendKeys("dialog [name=actor]", "eve"),
		chromedp.Click("dialog [data-send]"), says("needs no approval"), chromedp.Click("dialog button[type=button]"), chromedp.WaitNotPresent("dialog"))
	give("assign", chromedp.SendKeys("dialog [name=candidateId]", "bob"))
	give("evict", says("Nothing takes an eviction back"))
	axe(t, ctx)
	shot(t, ctx, "election")
	run(t, ctx, dark())
	axe(t, ctx)
	shot(t, ctx, "election-dark")
	run(t, ctx, chromedp.EmulateViewport(400, 800))
	fits, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("document.documentElement.scrollWidth <= 400"))
	if err != nil {
		t.Fatal(err)
	}
	shot(t, ctx, "election-400")
	if !fits {
		t.Error("the page is wider than a screen of 400 pixels")
	}
}

// dark lets the browser prefer dark pages.
func dark() step {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
		return err
	})
}

// axe looks for what keeps people from using the page, with axe-core from npm: it is too large, and
// under another license, to be kept here.
func axe(t *testing.T, ctx context.Context) {
	t.Helper()
	const dir = "../../.build/axe"
	text, err := os.ReadFile(dir + "/node_modules/axe-core/axe.min.js")
	if err != nil {
		if out, err := exec.CommandContext(t.Context(), "npm", "install", "--no-save", "--prefix", dir, "axe-core@4.14.1").CombinedOutput(); err != nil {
			t.Fatalf("axe-core is fetched by npm: %v: %s", err, out)
		}
		if text, err = os.ReadFile(dir + "/node_modules/axe-core/axe.min.js"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](string(text)+"; true")); err != nil {
		t.Fatal(err)
	}
	run(t, ctx, chromedp.WaitVisible("main h1"))
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("window.found = undefined; axe.run().then(r => { window.found = r.violations.map(v => v.id + ': ' + v.nodes.map(n => n.target + ' ' + n.failureSummary).join(', ')).join('; ') || 'clean' }); true")); err != nil {
		t.Fatal(err)
	}
	found, err := chromedp.Run(ctx, chromedp.Poll[string]("window.found", chromedp.WithPollingTimeout(time.Minute)))
	if err != nil || found != "clean" {
		t.Errorf("axe: %v %s", err, found)
	}
}

func TestAThousandElectionsAreShownAndSearched(t *testing.T) {
	ctx, s := browser(t), newServer(t)
	s.start()
	for i := range 1000 {
		s.post(fmt.Sprintf("job-%03d:acquire", i), `{"candidateId":"ann","leaseDuration":"1h"}`)
	}
	run(t, ctx, chromedp.Navigate(s.url), says("1000 of 1000"), chromedp.SendKeys("input[type=search]", "job-777"), says("1 of 1000"), says("job-777"))
	shot(t, ctx, "thousand")
}

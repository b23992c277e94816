package authn

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
)

// latch is closed once there is proof that the platform does not verify callers. Then every call is
// refused, until a probe finds that the platform refuses callers again, or the process restarts.
type latch struct {
	log *slog.Logger

	mu       sync.Mutex
	why      string // "" while it is open; guarded by mu
	awaiting bool   // calls are refused until the first verdict of a probe; guarded by mu
}

// setAwaiting sets whether all calls are refused until the first verdict.
func (l *latch) setAwaiting(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.awaiting = on
}

// close refuses all calls from now on, for the reason given. The arguments must not come from a
// request.
func (l *latch) close(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why == "" {
		l.log.Error("every call is refused: the platform does not verify callers", "reason", why)
	}
	l.why, l.awaiting = why, false
}

func (l *latch) open() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why != "" {
		l.log.Warn("calls are answered again: the platform refuses callers without a credential", "was", l.why)
	}
	l.why, l.awaiting = "", false
}

func (l *latch) state() (why string, awaiting bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why, l.awaiting
}

// refuse returns an error while calls are refused, and nil otherwise.
func (l *latch) refuse() error {
	switch why, awaiting := l.state(); {
	case why != "":
		return &leadership.Error{Code: leadership.StoreUnavailable, Detail: "this instance cannot tell who calls, so it refuses every call and did nothing; its operator finds the reason in its log"}
	case awaiting:
		return &leadership.Error{Code: leadership.StoreUnavailable, Detail: "this instance is verifying that Cloud Run checks its callers, so it did nothing; try again in some seconds"}
	}
	return nil
}

// metadataHost is the metadata server of Cloud Run.
const metadataHost = "metadata.google.internal"

const (
	probeEvery    = time.Minute
	probeAgain    = 5 * time.Second // after an unclear verdict in the first minute
	probeTimeout  = 10 * time.Second
	metadataTries = 3
)

// Start asks the metadata server where the process runs, so that a variable alone cannot pass for
// Cloud Run, and learns the service's URL from it. Call it before the first Authenticate, which
// then refuses calls until Run has probed the URL. It blocks for some seconds at most.
func (p *Platform) Start(ctx context.Context) error {
	var region string
	var err error
	for try := range metadataTries {
		if region, err = p.metadata(ctx, "instance/region"); err == nil || ctx.Err() != nil {
			break
		}
		if try < metadataTries-1 {
			pause(ctx, p.retry)
		}
	}
	if err != nil {
		return fmt.Errorf("the metadata server does not answer (%w), and every instance of Cloud Run has one: deploy there, or verify tokens with oidc", err)
	}
	found := regionName.FindStringSubmatch(region)
	if p.url == "" && found != nil {
		p.url = fmt.Sprintf("https://%s-%s.%s.run.app", p.service, found[1], found[2])
	}
	if p.url == "" && p.required {
		return fmt.Errorf("a probe is required, and the metadata server names no region (%q), so the service's URL is not known: name it, too, with --auth-probe", region)
	}
	if p.url == "" {
		p.latch.log.Warn("nothing verifies that Cloud Run checks callers: the metadata server names no region, so the service's URL is not known; name it with --auth-probe", "region", region)
		return nil
	}
	p.latch.setAwaiting(true)
	return nil
}

var regionName = regexp.MustCompile(`^projects/([0-9]+)/regions/([a-z0-9-]+)$`)

func (p *Platform) metadata(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout/metadataTries)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.metadataHost+"/computeMetadata/v1/"+path, nil)
	if err != nil {
		return "", err
	}
	const flavor = "Metadata-Flavor"
	r.Header.Set(flavor, "Google")
	reply, err := p.client.Do(r)
	if err != nil {
		return "", err
	}
	defer reply.Body.Close()
	value, err := io.ReadAll(io.LimitReader(reply.Body, 1<<10))
	if reply.StatusCode != http.StatusOK || reply.Header.Get(flavor) != "Google" {
		return "", cmp.Or(err, errors.New("another server answers in its place"))
	}
	return strings.TrimSpace(string(value)), err
}

// Run asks the service's own URL without a token, at once and then each minute, until ctx ends. If
// the service itself answers, and not the platform, callers without a token can reach it, and the
// latch closes. Another answer, or none, changes nothing: the URL may be out of reach from here.
// Then it asks again after seconds during the first minute. If that brings no verdict either, it
// logs so once. Calls are answered without a verdict unless one is required.
func (p *Platform) Run(ctx context.Context) error {
	began := time.Now()
	var known, warned bool
	for p.url != "" && ctx.Err() == nil {
		verdict := probe(ctx, p.client, p.url)
		switch verdict {
		case itself:
			p.latch.close("a call of " + p.url + " without a credential came through to the service: " + openAdvice)
		case platform:
			p.latch.open()
		case unclear:
			if !p.required {
				p.latch.setAwaiting(false)
			}
		}
		known = known || verdict != unclear
		early := time.Since(began) < probeEvery
		if !known && !early && !warned {
			warned = true
			p.latch.log.Warn("nothing verifies that Cloud Run checks callers: neither it nor this service answers at the service's URL, and until one does calls are answered only if no probe is required; name one that the service can reach with --auth-probe, and make sure that IAM does not let in allUsers", "url", p.url, "required", p.required)
		}
		if verdict == unclear && early {
			pause(ctx, probeAgain)
		} else {
			pause(ctx, probeEvery)
		}
	}
	<-ctx.Done()
	return nil
}

const openAdvice = "IAM lets everyone in; remove allUsers and allAuthenticatedUsers from its invokers, and let it check invokers"

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// answerer is the part that answered a probe.
type answerer int

const (
	unclear  answerer = iota
	platform          // the platform, which refused the call
	itself
)

// iapAnswers is a header of the answers that Identity-Aware Proxy itself gives, such as a redirect
// to sign in.
const iapAnswers = "X-Goog-Iap-Generated-Response"

// probe makes a call without a token. The service repeats the call's id, and the platform does not.
func probe(ctx context.Context, client *http.Client, url string) answerer {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+wire.PathLive, nil)
	if err != nil {
		return unclear
	}
	id := "probe-" + rand.Text()
	r.Header.Set(wire.RequestIDHeader, id)
	reply, err := client.Do(r)
	if err != nil {
		return unclear
	}
	defer reply.Body.Close()
	switch {
	case reply.Header.Get(wire.RequestIDHeader) == id:
		return itself
	case reply.StatusCode == http.StatusUnauthorized, reply.StatusCode == http.StatusForbidden, reply.Header.Get(iapAnswers) == "true":
		return platform
	}
	return unclear
}

// Latched returns the proof that the platform does not verify callers; "" if there is none.
func (p *Platform) Latched() string {
	why, _ := p.latch.state()
	return why
}

// Refusing returns why every call is refused, for callers; "" while calls are answered. Only the
// log says how the platform can be bypassed.
func (p *Platform) Refusing() string {
	switch why, awaiting := p.latch.state(); {
	case why != "":
		return "callers are not verified; its operator finds the reason in its log"
	case awaiting:
		return "the instance is verifying that Cloud Run checks its callers"
	}
	return ""
}

// validateURL requires the URL of a service, without a path.
func validateURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return errors.New("the service's own URL must be as https://regent-123.europe-west1.run.app, without a path")
	}
	return nil
}

// pause waits, until ctx ends at most.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"

	"golang.org/x/time/rate"

	"regent/httpapi"
	"regent/httpapi/access/authn"
	"regent/httpapi/access/authz"
	"regent/httpapi/access/limit"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/statement"
	"regent/leadership/telemetry"
	"regent/leadership/wire"
)

// The ways to verify callers.
const (
	authNone     = "none"
	authPlatform = "platform"
	authOIDC     = "oidc"
)

// probeRequired in --auth-probe refuses calls until a probe has a verdict.
const probeRequired = "required"

// defaultIssuer is Google, for service accounts and people.
const defaultIssuer = "https://accounts.google.com"

// accessSettings are the settings of authentication and access control.
type accessSettings struct {
	auth      string
	audiences []string
	issuers   []string
	file      string   // the access file
	probe     []string // for authPlatform: the service's own URL, probeRequired, or both
	// proxies are the audiences of Identity-Aware Proxy in front of the service; see
	// authn.IAPConfig.
	proxies []string
}

// resolve fills in defaults and refuses settings that would admit callers by mistake. exposed
// reports whether other machines can reach the service.
func (s *accessSettings) resolve(env map[string]string, exposed bool) error {
	s.auth = cmp.Or(s.auth, authNone)
	switch s.auth {
	case authNone:
		return s.checkNone(exposed)
	case authPlatform:
		if env["K_SERVICE"] == "" {
			return usagef("--auth %s is for Cloud Run, which verifies callers before it forwards a call, and this is not Cloud Run (K_SERVICE is not set); give --auth %s", authPlatform, authOIDC)
		}
		if len(s.issuers) > 0 {
			return usagef("--auth-issuer is for --auth %s; on Cloud Run the issuer is Google", authOIDC)
		}
	case authOIDC:
		if len(s.probe) > 0 {
			return usagef("--auth-probe is for --auth %s; with --auth %s the service verifies callers itself", authPlatform, authOIDC)
		}
		if len(s.issuers) == 0 {
			s.issuers = []string{defaultIssuer}
		}
	default:
		return usagef("--auth %q is not %s, %s or %s", s.auth, authNone, authPlatform, authOIDC)
	}
	if len(s.audiences) == 0 {
		return usagef("--auth %s needs --auth-audience: the audience of valid credentials, such as the URL of this service", s.auth)
	}
	if s.file == "" {
		return usagef("--auth %s needs --access FILE, which grants roles to principals: without it every call is refused", s.auth)
	}
	return nil
}

func (s accessSettings) checkNone(exposed bool) error {
	switch {
	case len(s.audiences) > 0 || len(s.issuers) > 0 || s.file != "" || len(s.probe) > 0 || len(s.proxies) > 0:
		return usagef("--auth-audience, --auth-issuer, --auth-probe, --iap-audience and --access have no effect without authentication; give --auth %s or --auth %s, too", authPlatform, authOIDC)
	case exposed:
		return usagef("other machines can reach this address, and callers would not be authenticated; give --auth %s (behind Cloud Run's IAM) or --auth %s, or --listen %s",
			authPlatform, authOIDC, defaultListen)
	}
	return nil
}

// access verifies callers and their rights. Without an access file everyone may do everything.
type access struct {
	who     authn.Authenticator
	keep    []func(context.Context) error // keep the authenticators up to date
	latch   func() string                 // says why every call is refused; nil without --auth platform
	file    *authz.File
	limits  *limit.Gate // nil without an access file
	rights  *authz.Gate // nil without an access file
	bodies  *limit.Bodies
	replies *limit.Bodies
	issuer  *statement.Issuer // of statements; nil without a key
	// strangers limits the log lines about callers that are not authenticated, or that no grant
	// names, so that they cannot flood the log. The metrics count all of them.
	strangers *rate.Limiter
	*measures
}

func openAccess(ctx context.Context, s accessSettings, env map[string]string, m *measures) (*access, error) {
	a := &access{measures: m, strangers: rate.NewLimiter(10, 100)}
	a.bodies = limit.NewBodies(httpapi.MemoryLimit(), a.refusedCall)
	a.replies = limit.NewReplies(httpapi.MemoryLimit(), a.refusedCall)
	var err error
	switch s.auth {
	case authPlatform:
		err = a.openPlatform(ctx, s, env)
	case authOIDC:
		var o *authn.OIDC
		if o, err = authn.NewOIDC(authn.OIDCConfig{Issuers: s.issuers, Audiences: s.audiences, Log: m.log}); err == nil {
			a.who, a.keep = o, append(a.keep, o.Run)
		}
	default:
		return a, nil
	}
	if err != nil {
		return nil, usagef("--auth %s: %w", s.auth, err)
	}
	if err := a.openProxies(s); err != nil {
		return nil, err
	}
	if a.file, err = s.openFile(m.log); err != nil {
		return nil, usagef("--access %s: %w", s.file, err)
	}
	limits := func(who authn.Principal) limit.Limits { return a.file.Access().Limits(who) }
	a.limits = limit.New(limit.Config{Limits: limits, Refused: a.refusedCall})
	a.rights = authz.NewGate(a.file.Access, a.audit)
	return a, nil
}

func (s accessSettings) openFile(log *slog.Logger) (*authz.File, error) {
	crowd := authz.Admitted
	if s.auth == authOIDC {
		crowd = authz.Anyone
	}
	return authz.OpenFile(s.file, crowd, log)
}

func (a *access) openPlatform(ctx context.Context, s accessSettings, env map[string]string) error {
	urls := slices.DeleteFunc(slices.Clone(s.probe), func(part string) bool { return part == probeRequired })
	p, err := authn.NewPlatform(authn.PlatformConfig{
		Service: env["K_SERVICE"], Audiences: s.audiences, URL: strings.Join(urls, ","), Required: len(urls) < len(s.probe), MetadataHost: env["GCE_METADATA_HOST"], Log: a.log,
	})
	if err != nil {
		return err
	}
	if err := p.Start(ctx); err != nil {
		return err
	}
	a.who, a.keep, a.latch = p, append(a.keep, p.Run), p.Refusing
	return a.Latch(func() bool { return p.Latched() != "" })
}

// openProxies also admits callers that come through Identity-Aware Proxy.
func (a *access) openProxies(s accessSettings) error {
	if len(s.proxies) == 0 {
		return nil
	}
	i, err := authn.NewIAP(authn.IAPConfig{
		Audiences: s.proxies, Other: a.who, Log: a.log,
		// With other issuers an e-mail names no principal: see authn.OIDCConfig.
		Emails: s.auth == authPlatform || slices.Equal(s.issuers, []string{defaultIssuer}),
	})
	if err != nil {
		return usagef("--iap-audience: %w", err)
	}
	a.who, a.keep = i, append(a.keep, i.Run)
	return nil
}

// troubles returns the troubles of the access file.
func (a *access) troubles() []instance.Trouble {
	if a.file != nil && a.file.Invalid() {
		return []instance.Trouble{telemetry.InvalidAccess}
	}
	return nil
}

// run keeps keys and rights up to date until ctx ends.
func (a *access) run(ctx context.Context) {
	var running sync.WaitGroup
	for _, keep := range a.keep {
		running.Go(func() { _ = keep(ctx) }) // returns the error of ctx
	}
	if a.file != nil {
		running.Go(func() { a.file.Run(ctx) })
	}
	running.Wait()
}

// gates returns the gates that every call of the service passes: the limits, then the rights.
// concurrency is the number of requests that the platform sends at a time; 0 means no limit.
func (a *access) gates(concurrency int) []instance.Gate {
	long := limit.NewLong(concurrency, httpapi.MostConnections(), a.refusedCall)
	switch {
	case a.file != nil:
		return []instance.Gate{a.limits, long, a.rights}
	case concurrency > 0:
		return []instance.Gate{long}
	}
	return nil
}

// admit implements wire.Admit for all doors.
func (a *access) admit(ctx context.Context, ask wire.Admission) (admitted context.Context, done func(), err error) {
	if a.file != nil {
		op := instance.Op{Row: ask.Row, Election: ask.Election, N: 1, Bytes: int(ask.Body)}
		if ctx, err = a.limits.Admit(ctx, op); err == nil {
			err = a.rights.Admit(ctx, op)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	done, err = a.bodies.Enter(ctx, ask.Body)
	return ctx, done, err
}

// refusedCall counts a call that exceeds a limit.
func (a *access) refusedCall(ctx context.Context, quota bool) {
	why := telemetry.RateLimited
	if quota {
		why = telemetry.Quota
	}
	a.Refused(ctx, why)
}

// wrap authenticates callers before the API is called, except for health and the specification.
func (a *access) wrap(api http.Handler) http.Handler {
	if a.who == nil {
		return api
	}
	asked := authn.Require(a.who, a.refused)(api)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next := api
		if strings.HasPrefix(r.URL.Path, wire.PathGuarded) {
			next = asked
		}
		next.ServeHTTP(w, r)
	})
}

// verified reports whether the caller is known. It does not wait for an issuer's keys.
func (a *access) verified(r *http.Request) bool {
	if a.who == nil {
		return true
	}
	ctx, cancel := context.WithCancel(r.Context())
	cancel()
	_, err := a.who.Authenticate(r.WithContext(ctx))
	return err == nil
}

// door authenticates the callers of a door whose errors have a form of their own. The
// WWW-Authenticate header of a refusal also has challenge, unless that is empty.
func (a *access) door(d httpapi.Door, challenge string) httpapi.Door {
	if a.who == nil {
		return d
	}
	refuse := d.Refuse
	if refuse == nil {
		refuse = func(w http.ResponseWriter, err error) {
			p := wire.NewProblem(err)
			p.RequestID = w.Header().Get(wire.RequestIDHeader)
			p.Write(w, p)
		}
	}
	d.Handler = authn.RequireAs(a.who, a.refused, func(w http.ResponseWriter, err error) {
		const header = "WWW-Authenticate"
		if asks := w.Header().Get(header); asks != "" && challenge != "" {
			w.Header().Set(header, asks+", "+challenge)
		}
		refuse(w, err)
	})(d.Handler)
	return d
}

// audit logs a call that was refused, privileged, or answered with a lease.
func (a *access) audit(ctx context.Context, r authz.Record) {
	if r.Code == wire.PermissionDenied {
		a.Refused(ctx, telemetry.PermissionDenied)
	}
	if r.Stranger && !a.strangers.Allow() {
		return
	}
	attrs := []slog.Attr{
		slog.String("principal", r.Principal), slog.String("call", string(r.Verb)), slog.String("outcome", cmp.Or(string(r.Code), "done")), slog.String("requestId", r.RequestID),
	}
	for _, applies := range []slog.Attr{
		slog.String("election", string(r.Election)), slog.String("candidate", string(r.Candidate)), slog.Int64("fencingToken", int64(r.Token)),
		slog.String("reason", r.Reason), slog.Int("parts", r.Parts),
	} {
		if v := applies.Value; !v.Equal(slog.StringValue("")) && !v.Equal(slog.Int64Value(0)) {
			attrs = append(attrs, applies)
		}
	}
	a.log.LogAttrs(ctx, slog.LevelInfo, "audit", attrs...)
}

func (a *access) refused(r *http.Request, err error) {
	code := wire.Internal
	errors.As(err, &code)
	if code == wire.Unauthenticated {
		a.Refused(r.Context(), telemetry.Unauthenticated)
	}
	if !a.strangers.Allow() {
		return
	}
	a.log.LogAttrs(r.Context(), slog.LevelInfo, "audit",
		slog.String("call", r.Method[:min(len(r.Method), 16)]), slog.String("outcome", string(code)), slog.String("requestId", leadership.RequestID(r.Context())), slog.Any("reason", err))
}

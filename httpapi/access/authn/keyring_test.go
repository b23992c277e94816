package authn_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"regent/httpapi/access/authn/issuertest"
	"regent/leadership/wire"
)

// down answers like a failing issuer.
var down = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })

// hanging never answers.
var hanging = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })

// lasting returns a token that outlives the test.
func lasting(i *issuertest.Issuer) string {
	claims := i.Claims(audience, ann)
	claims["exp"] = time.Now().Add(1000 * time.Hour).Unix()
	return i.Sign(claims)
}

func wantAsked(t *testing.T, issuer *issuertest.Issuer, n int) {
	t.Helper()
	synctest.Wait()
	if asked := issuer.Asked(issuertest.PathKeys); asked != n {
		t.Errorf("the issuer was asked for its keys %d times, want %d", asked, n)
	}
}

func TestKeysAreReadAgainBeforeTheyRunOut(t *testing.T) {
	t.Parallel()
	for maxAge, pause := range map[time.Duration]time.Duration{
		time.Hour:           48 * time.Minute,
		0:                   4 * time.Minute,
		2000000 * time.Hour: 19*time.Hour + 12*time.Minute,
	} {
		synctest.Test(t, func(t *testing.T) {
			issuer := newIssuer(t)
			issuer.SetMaxAge(maxAge)
			verifier(t, issuer)
			wantAsked(t, issuer, 1)
			time.Sleep(pause - time.Second)
			wantAsked(t, issuer, 1)
			time.Sleep(time.Second)
			wantAsked(t, issuer, 2)
			time.Sleep(pause)
			wantAsked(t, issuer, 3)
		})
	}
}

func TestAgeOfKeysInACacheCounts(t *testing.T) {
	t.Parallel()
	for _, header := range []http.Header{
		{"Cache-Control": {"Public, MAX-AGE=3600"}, "Age": {"1800"}},
		{"Cache-Control": {"public", "s-maxage=7, max-age=1800"}, "Age": {"-7"}},
		{"Cache-Control": {"max-age=18446744073709553416"}, "Age": {"31534200"}}, // more than a year is a year
	} {
		synctest.Test(t, func(t *testing.T) {
			issuer := newIssuer(t)
			issuer.Break(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				maps.Copy(w.Header(), header)
				well(issuer).ServeHTTP(w, r)
			}))
			verifier(t, issuer)
			wantAsked(t, issuer, 1)
			time.Sleep(24*time.Minute - time.Second)
			wantAsked(t, issuer, 1)
			time.Sleep(time.Second)
			wantAsked(t, issuer, 2)
		})
	}
}

func TestCallersDoNotWaitForARefresh(t *testing.T) {
	bubble(t, func(t *testing.T, issuer *issuertest.Issuer) {
		o := verifier(t, issuer)
		wantAsked(t, issuer, 1)
		issuer.Break(hanging)
		time.Sleep(48*time.Minute + time.Second) // a look is under way now
		began := time.Now()
		wantCaller(t, o, with(lasting(issuer)), ann)
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %v, for a key that was there", took)
		}
	})
}

func TestNewKeyIsUsedAtOnceAndRemovedKeyEndsItsTokens(t *testing.T) {
	bubble(t, func(t *testing.T, issuer *issuertest.Issuer) {
		o := verifier(t, issuer)
		first := lasting(issuer)
		wantCaller(t, o, with(first), ann)
		time.Sleep(time.Minute)

		issuer.Rotate(1)
		second := lasting(issuer)
		wantCaller(t, o, with(second), ann)
		wantCaller(t, o, with(first), ann) // its key is still shown
		wantAsked(t, issuer, 2)

		issuer.Rotate(0)
		wantCaller(t, o, with(first), ann) // not known here yet
		time.Sleep(48 * time.Minute)
		synctest.Wait()
		for _, old := range []string{first, second} {
			wantUnauthenticated(t, o, with(old), "does not know the key")
		}
	})
}

func TestAKeyThatChangesUnderItsNameEndsItsTokens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		issuer, usurper := newIssuer(t), issuertest.New() // their first keys have the same id
		o := verifier(t, issuer)
		token := lasting(issuer)
		wantCaller(t, o, with(token), ann)
		issuer.Break(usurper)
		time.Sleep(48 * time.Minute)
		synctest.Wait()
		wantUnauthenticated(t, o, with(token), "signature")
		wantCaller(t, o, with(lasting(usurper)), ann)
	})
}

func TestMadeUpKeysCostTheIssuerOneLookAMinute(t *testing.T) {
	bubble(t, func(t *testing.T, issuer *issuertest.Issuer) {
		issuer.SetMaxAge(24 * time.Hour)
		o := verifier(t, issuer)
		wantAsked(t, issuer, 1)
		for i := range 600 { // for ten minutes
			time.Sleep(time.Second)
			head := map[string]any{"kid": fmt.Sprintf("made-up-%d", i)}
			token := issuertest.Encode([]byte(header(issuer.Key(), head))) + "." + issuertest.Encode([]byte(issuertest.JSON(issuer.Claims(audience, ann)))) + ".AAAA"
			var callers sync.WaitGroup
			for range 3 {
				callers.Go(func() {
					e := wantRefusal(t, o, with(token), wire.Unauthenticated, "does not know the key")
					if e.RetryAfter < time.Second || e.RetryAfter > time.Minute {
						t.Errorf("try again after %v", e.RetryAfter)
					}
				})
			}
			callers.Wait()
		}
		wantAsked(t, issuer, 11)
	})
}

func TestKeysServeForADayWhenTheirIssuerIsDown(t *testing.T) {
	bubble(t, func(t *testing.T, issuer *issuertest.Issuer) {
		o := verifier(t, issuer)
		seen, unseen := lasting(issuer), issuer.Sign(map[string]any{"iss": issuer.URL(), "sub": "bob", "aud": audience, "exp": time.Now().Add(99 * time.Hour).Unix()})
		wantCaller(t, o, with(seen), ann)
		issuer.Break(down)
		time.Sleep(24*time.Hour - time.Second)
		wantCaller(t, o, with(seen), ann)
		wantCaller(t, o, with(unseen), issuer.URL()+"|bob")
		time.Sleep(time.Second)
		wantUnavailable(t, o, with(seen))
		wantUnavailable(t, o, with(unseen))

		issuer.Break(nil)
		time.Sleep(time.Minute) // one look a minute, and no more
		synctest.Wait()
		wantCaller(t, o, with(seen), ann)
	})
}

func TestSilentIssuerDoesNotDisownAKey(t *testing.T) {
	t.Parallel()
	for _, broken := range []http.Handler{down, hanging} {
		synctest.Test(t, func(t *testing.T) {
			issuer := newIssuer(t)
			o := verifier(t, issuer)
			wantAsked(t, issuer, 1)
			old := lasting(issuer)
			issuer.Rotate(0)
			issuer.Break(broken)
			time.Sleep(time.Minute)
			began := time.Now()
			wantUnavailable(t, o, with(issuer.Token(audience, ann)))
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("the caller waited for %v", took)
			}
			wantCaller(t, o, with(old), ann)
		})
	}
}

func TestAgeOfKeysCountsFromTheRequest(t *testing.T) {
	bubble(t, func(t *testing.T, issuer *issuertest.Issuer) {
		issuer.Break(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(2 * time.Second)
			well(issuer).ServeHTTP(w, r)
		}))
		o := verifier(t, issuer)
		token := lasting(issuer)
		wantCaller(t, o, with(token), ann)
		issuer.Break(down)
		time.Sleep(24*time.Hour - 4*time.Second)
		wantUnavailable(t, o, with(token))
	})
}

func TestIssuerThatIsDownIsAskedLessAndLess(t *testing.T) {
	bubble(t, func(t *testing.T, issuer *issuertest.Issuer) {
		issuer.Break(down)
		o := verifier(t, issuer)
		token := lasting(issuer)
		if e := wantUnavailable(t, o, with(token)); e.RetryAfter <= 0 {
			t.Error("nothing is said of when to try again")
		}
		for range 63 { // after 1, 3, 7, 15, 31 and 63 s
			time.Sleep(time.Second)
			synctest.Wait()
			wantUnavailable(t, o, with(token)) // which causes no look
		}
		if n := issuer.Asked(issuertest.PathDiscovery); n != 7 {
			t.Errorf("asked %d times in a minute, want 7", n)
		}
		time.Sleep(57 * time.Minute)
		synctest.Wait()
		if n := issuer.Asked(issuertest.PathDiscovery); n != 7+57 {
			t.Errorf("asked %d times in an hour, want 64", n)
		}
		issuer.Break(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		wantCaller(t, o, with(token), ann)
	})
}

func TestCallersShareALookAndDoNotWaitForEver(t *testing.T) {
	bubble(t, func(t *testing.T, issuer *issuertest.Issuer) {
		issuer.Break(hanging)
		o := verifier(t, issuer)
		token := issuer.Token(audience, ann)
		began := time.Now()
		var callers sync.WaitGroup
		for range 50 {
			callers.Go(func() { wantUnavailable(t, o, with(token)) })
		}
		callers.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			wantUnavailable(t, o, with(token).WithContext(ctx))
			if took := time.Since(began); took != time.Second {
				t.Errorf("a caller with a second of patience waited for %v", took)
			}
		})
		callers.Wait()
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("callers waited for %v, want 5s", took)
		}
		if n := issuer.Asked(issuertest.PathDiscovery); n != 1 {
			t.Errorf("51 callers at once asked the issuer %d times", n)
		}
	})
}

func TestUntrustworthyDocumentLeavesNoKeys(t *testing.T) {
	t.Parallel()
	for name, answer := range untrustworthy(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				issuer := newIssuer(t)
				issuer.Break(answer(issuer))
				o := verifier(t, issuer)
				token := issuer.Token(audience, ann)
				wantUnavailable(t, o, with(token))

				issuer.Break(nil) // the keys that were read before are kept
				time.Sleep(time.Minute)
				wantCaller(t, o, with(token), ann)
				issuer.Break(answer(issuer))
				time.Sleep(time.Hour)
				wantCaller(t, o, with(lasting(issuer)), ann)
			})
		})
	}
}

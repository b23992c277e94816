package statement_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/statement"
)

// publisher is a server of keys, which counts how often it is asked.
type publisher struct {
	status int
	set    []byte
	hangs  bool
	asked  int
}

func (p *publisher) RoundTrip(r *http.Request) (*http.Response, error) {
	p.asked++
	if p.hangs {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	w := httptest.NewRecorder()
	w.Header().Set("Location", "/elsewhere")
	w.WriteHeader(p.status)
	w.Write(p.set)
	return w.Result(), nil
}

func newSource(t *testing.T, p *publisher) *statement.Source {
	t.Helper()
	source, err := statement.NewSource("https://regent.example.com" + statement.PathKeys)
	require.NoError(t, err)
	source.AskBy(p)
	return source
}

func newIssuer(t *testing.T) *statement.Issuer {
	t.Helper()
	key, err := statement.ParseKey(encoded(t, privateKeys(t)["EdDSA"]))
	require.NoError(t, err)
	issuer, err := statement.NewIssuer("", key)
	require.NoError(t, err)
	return issuer
}

// sign returns a statement that lasts for two hours.
func sign(t *testing.T, by *statement.Issuer) string {
	t.Helper()
	long := lease
	long.LeaseExpiration = time.UnixMilli(issued).Add(2 * time.Hour)
	text, err := by.Sign(t.Context(), long, "")
	require.NoError(t, err)
	return text
}

func TestASourceKeepsKeysForMinutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testSourceKeepsKeys)
}

func testSourceKeepsKeys(t *testing.T) {
	old, next := newIssuer(t), newIssuer(t)
	p := &publisher{status: http.StatusOK, set: old.KeySet()}
	source := newSource(t, p)
	now := time.UnixMilli(issued)
	texts := map[*statement.Issuer]string{old: sign(t, old), next: sign(t, next)}
	for _, step := range []struct {
		what   string
		after  time.Duration
		serves func()
		by     *statement.Issuer
		good   bool
		asked  int
	}{
		{"the first", 0, nil, old, true, 1},
		{"the second", time.Second, nil, old, true, 1},
		{"an unknown key, a moment after the keys were read", 2 * time.Second, nil, next, false, 1},
		{"an unknown key", 11 * time.Second, nil, next, false, 2},
		{"another one at once", 12 * time.Second, nil, next, false, 2},
		{"once it is published", 30 * time.Second, func() { p.set = next.KeySet() }, next, true, 3},
		{"a key that was taken back", 31 * time.Second, nil, old, false, 3},
		{"after five minutes", 5*time.Minute + 31*time.Second, nil, next, true, 4},
		{"while the server is away", 11 * time.Minute, func() { p.status = http.StatusBadGateway }, next, true, 5},
		{"while a redirect is in its place", 12 * time.Minute, func() { p.status = http.StatusFound }, next, true, 6},
		{"while it says too much", 13 * time.Minute, func() { p.status, p.set = http.StatusOK, []byte(strings.Repeat(" ", 1<<20)) }, next, true, 7},
		{"for an hour", 66 * time.Minute, nil, next, false, 8},
	} {
		if step.serves != nil {
			step.serves()
		}
		_, err := source.Verify(t.Context(), texts[step.by], now.Add(step.after), statement.Want{})
		if (err == nil) != step.good || p.asked != step.asked {
			t.Errorf("%s: %v, asked %d times; want good %t, %d times", step.what, err, p.asked, step.good, step.asked)
		}
	}
	_, err := source.Verify(t.Context(), texts[next], now.Add(67*time.Minute), statement.Want{})
	assert.ErrorIs(t, err, leadership.StoreUnavailable, "without keys")
}

// A server that hangs delays verifiers that have keys a little, and others while they wait.
func TestAServerThatHangsHardlyDelaysVerifiers(t *testing.T) {
	t.Parallel()
	const little, patience, timeout = 100 * time.Millisecond, 500 * time.Millisecond, 5 * time.Second
	for _, test := range []struct {
		what    string
		age     time.Duration // of the keys
		unknown bool          // the key of the first statement
		limit   time.Duration // of the first call
		good    bool
		first   time.Duration // how long it takes
		second  time.Duration // the same of another one at the same time, with a known key
	}{
		{"keys of six minutes", 6 * time.Minute, false, time.Hour, true, patience, patience},
		{"keys of six minutes, and a caller in a hurry", 6 * time.Minute, false, little, true, little, patience},
		{"an unknown key", time.Minute, true, time.Hour, false, patience, 0},
		{"an unknown key, and a caller in a hurry", time.Minute, true, little, false, little, 0},
		{"keys of an hour", time.Hour, false, little, false, little, timeout},
	} {
		synctest.Test(t, func(t *testing.T) {
			old := newIssuer(t)
			p := &publisher{status: http.StatusOK, set: old.KeySet()}
			source := newSource(t, p)
			good, now := sign(t, old), time.UnixMilli(issued)
			_, err := source.Verify(t.Context(), good, now, statement.Want{})
			require.NoError(t, err)
			p.hangs, now = true, now.Add(test.age)
			first := good
			if test.unknown {
				first = sign(t, newIssuer(t))
			}
			begin := time.Now()
			var both sync.WaitGroup
			both.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), test.limit)
				defer cancel()
				_, err := source.Verify(ctx, first, now, statement.Want{})
				if took := time.Since(begin); (err == nil) != test.good || took != test.first {
					t.Errorf("%s: %v after %v; want good %t after %v", test.what, err, took, test.good, test.first)
				}
			})
			synctest.Wait() // it asks
			_, err = source.Verify(t.Context(), good, now, statement.Want{})
			if took := time.Since(begin); (err == nil) != (test.age < time.Hour) || took != test.second || p.asked != 2 {
				t.Errorf("%s: another one: %v after %v, asked %d times", test.what, err, took, p.asked)
			}
			both.Wait()
			time.Sleep(patience - time.Since(begin)) // of the fake clock
			waited := time.Now()
			_, err = source.Verify(t.Context(), good, now, statement.Want{})
			if took := time.Since(waited); took != 0 || p.asked != 2 {
				t.Errorf("%s: a later one: %v after %v, asked %d times", test.what, err, took, p.asked)
			}
			time.Sleep(timeout)
		})
	}
}

func TestKeysAreReadFromASafePlace(t *testing.T) {
	t.Parallel()
	for from, good := range map[string]bool{
		"https://regent.example.com/.well-known/jwks.json": true, "http://127.0.0.1:8080/x": true, "http://[::1]/x": true, "http://localhost/x": true,
		"http://regent.example.com/x": false, "http://127.0.0.1.example.com/x": false, "file:///x": false, "": false, "https://": false, "::": false,
	} {
		if _, err := statement.NewSource(from); (err == nil) != good {
			t.Errorf("%q: %v", from, err)
		}
	}
}

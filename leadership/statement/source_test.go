package statement_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/statement"
)

// publisher is a server of keys, which counts how often it is asked.
type publisher struct {
	status int
	set    []byte
	asked  int
}

func (p *publisher) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	p.asked++
	w.Header().Set("Location", "/elsewhere")
	w.WriteHeader(p.status)
	w.Write(p.set)
}

func newIssuer(t *testing.T) *statement.Issuer {
	t.Helper()
	key, err := statement.ParseKey(encoded(t, privateKeys(t)["EdDSA"]))
	if err != nil {
		t.Fatal(err)
	}
	issuer, err := statement.NewIssuer("", key)
	if err != nil {
		t.Fatal(err)
	}
	return issuer
}

func TestASourceKeepsKeysForMinutes(t *testing.T) {
	t.Parallel()
	old, next := newIssuer(t), newIssuer(t)
	p := &publisher{http.StatusOK, old.KeySet(), 0}
	server := httptest.NewServer(p)
	defer server.Close()
	source, err := statement.NewSource(server.URL + statement.PathKeys)
	if err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(issued)
	long := lease
	long.LeaseExpiration = now.Add(2 * time.Hour)
	texts := map[*statement.Issuer]string{}
	for _, issuer := range []*statement.Issuer{old, next} {
		if texts[issuer], err = issuer.Sign(t.Context(), long, ""); err != nil {
			t.Fatal(err)
		}
	}
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
	if _, err := source.Verify(t.Context(), texts[next], now.Add(67*time.Minute), statement.Want{}); !errors.Is(err, leadership.StoreUnavailable) {
		t.Errorf("without keys: %v", err)
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

package statement_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/statement"
)

var lease = leadership.Lease{
	Election: "reports", State: leadership.Held, LeaderID: "agent-1", Token: 34,
	ReadAt: time.UnixMilli(issued), LeaseExpiration: time.UnixMilli(ends),
}

// encoded returns a private key in PEM.
func encoded(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// privateKeys are of the two kinds, by their algorithms.
func privateKeys(t *testing.T) map[string]any {
	t.Helper()
	_, ed, _ := ed25519.GenerateKey(rand.Reader)
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return map[string]any{"EdDSA": ed, "ES256": ec}
}

func TestKeysOfFilesSign(t *testing.T) {
	t.Parallel()
	for by, private := range privateKeys(t) {
		key, err := statement.ParseKey(append(encoded(t, private), " \n\n"...))
		require.NoError(t, err)
		issuer, err := statement.NewIssuer("", key)
		require.NoError(t, err)
		keys, err := statement.ParseKeys(issuer.KeySet())
		if err != nil || !strings.Contains(string(issuer.KeySet()), `"alg":"`+by+`"`) || strings.Contains(string(issuer.KeySet()), `"d":`) {
			t.Errorf("%s: %s, %v", by, issuer.KeySet(), err)
		}
		for range 200 { // the numbers of ECDSA have leading zeros now and then
			text, err := issuer.Sign(t.Context(), lease, "")
			if err == nil {
				_, err = keys.Verify(text, time.UnixMilli(issued), statement.Want{})
			}
			require.NoError(t, err, by)
		}
	}
}

func TestFilesThatAreNoKeyAreRefused(t *testing.T) {
	t.Parallel()
	good := encoded(t, privateKeys(t)["EdDSA"])
	long, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	other, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	require.NoError(t, err)
	for name, text := range map[string][]byte{
		"empty": nil, "no PEM": []byte("key"), "two": slices.Concat(good, good),
		"another type": []byte(strings.ReplaceAll(string(good), "PRIVATE", "PUBLIC")),
		"cut off":      pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("0")}),
		"RSA":          encoded(t, long), "P-384": encoded(t, other),
	} {
		if _, err := statement.ParseKey(text); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// The key of a service may have been replaced, or its answer mixed up.
func TestAWrongSignatureIsNotPassedOn(t *testing.T) {
	t.Parallel()
	for by, private := range privateKeys(t) {
		key, err := statement.ParseKey(encoded(t, private))
		require.NoError(t, err)
		for _, signature := range []string{"", "nonsense", strings.Repeat("s", 64), "0\x06\x02\x01\x01\x02\x01\x01"} {
			key.Sign = func(context.Context, []byte) ([]byte, error) { return []byte(signature), nil }
			issuer, err := statement.NewIssuer("", key)
			require.NoError(t, err)
			if text, err := issuer.Sign(t.Context(), lease, ""); err == nil {
				t.Errorf("%s: %q is signed as %s", by, signature, text)
			}
		}
	}
}

func TestAnIssuerHasEachKeyOnce(t *testing.T) {
	t.Parallel()
	key, err := statement.ParseKey(encoded(t, privateKeys(t)["ES256"]))
	require.NoError(t, err)
	for _, keys := range [][]statement.Key{nil, {key, key}, {{}}} {
		if _, err := statement.NewIssuer("", keys...); err == nil {
			t.Errorf("%d keys are accepted", len(keys))
		}
	}
}

func TestKeySetsAreBounded(t *testing.T) {
	t.Parallel()
	const one = `{"kty":"OKP","crv":"Ed25519","kid":"%d","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`
	set := func(n int) string {
		var keys []string
		for i := range n {
			keys = append(keys, fmt.Sprintf(one, i))
		}
		return `{"keys":[` + strings.Join(keys, ",") + `]}`
	}
	for name, text := range map[string]string{
		"empty": "", "no object": "[]", "no keys": set(0), "too many": set(17), "too long": set(1) + strings.Repeat(" ", 64<<10),
		"of others alone": `{"keys":[{"kty":"oct","kid":"1","k":"AAAA"},{"kty":"OKP","crv":"X25519","kid":"2","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`,
		"without a kid":   `{"keys":[` + strings.Replace(one, `"kid":"%d",`, "", 1) + `]}`,
	} {
		if _, err := statement.ParseKeys([]byte(text)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if keys, err := statement.ParseKeys([]byte(set(16))); err != nil || len(keys) != 16 {
		t.Errorf("%d keys, %v", len(keys), err)
	}
}

package cloud_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/cmd/regent/internal/cloud"
	"regent/leadership"
	"regent/leadership/statement"
)

const version = "projects/p/locations/europe-west4/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1"

// kms answers as the documents of Cloud KMS say that it does.
func kms(t *testing.T, algorithm string, private crypto.Signer, status *int) *cloud.Client {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(private.Public())
	require.NoError(t, err)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case *status != http.StatusOK:
			w.WriteHeader(*status)
			w.Write([]byte(forbidden))
		case r.Method == http.MethodGet && r.URL.Path == "/v1/"+version+"/publicKey":
			json.NewEncoder(w).Encode(map[string]any{"pem": string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), "algorithm": algorithm, "name": version})
		case r.Method == http.MethodPost && r.URL.Path == "/v1/"+version+":asymmetricSign":
			var asked struct {
				Digest struct{ SHA256 []byte }
				Data   []byte
			}
			if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
				t.Error(err)
			}
			message, hash := asked.Data, crypto.Hash(0)
			if strings.Contains(algorithm, "SHA256") {
				message, hash = asked.Digest.SHA256, crypto.SHA256
			}
			signature, err := private.Sign(rand.Reader, message, hash)
			if err != nil {
				t.Error(err)
			}
			json.NewEncoder(w).Encode(map[string]any{"signature": signature, "name": version})
		default:
			t.Errorf("%s %s", r.Method, r.URL.Path)
		}
	}))
	t.Cleanup(s.Close)
	return &cloud.Client{HTTP: s.Client(), Base: s.URL}
}

func TestAKeyOfCloudKMSSigns(t *testing.T) {
	t.Parallel()
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	_, ed, _ := ed25519.GenerateKey(rand.Reader)
	for algorithm, private := range map[string]crypto.Signer{"EC_SIGN_P256_SHA256": ec, "EC_SIGN_ED25519": ed} {
		status := http.StatusOK
		key, err := kms(t, algorithm, private, &status).Key(t.Context(), version)
		require.NoError(t, err)
		issuer, err := statement.NewIssuer("", key)
		require.NoError(t, err)
		now := time.Now()
		l := leadership.Lease{Election: "reports", State: leadership.Held, LeaderID: "ann", Token: 1, ReadAt: now, LeaseExpiration: now.Add(time.Hour)}
		text, err := issuer.Sign(t.Context(), l, "")
		require.NoError(t, err)
		keys, err := statement.ParseKeys(issuer.KeySet())
		require.NoError(t, err)
		if _, err := keys.Verify(text, now, statement.Want{}); err != nil {
			t.Errorf("%s: %v", algorithm, err)
		}
		status = http.StatusForbidden
		if text, err := issuer.Sign(t.Context(), l, ""); err == nil || !strings.Contains(err.Error(), "403") {
			t.Errorf("%s: %q, %v without the right", algorithm, text, err)
		}
	}
}

func TestOtherKeysOfCloudKMSAreRefused(t *testing.T) {
	t.Parallel()
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		version, algorithm string
		status             int
		says               string
	}{
		"no version":        {strings.TrimSuffix(version, "/cryptoKeyVersions/1"), "EC_SIGN_P256_SHA256", 200, "is not projects/P"},
		"another algorithm": {version, "RSA_SIGN_PSS_2048_SHA256", 200, "must be EC_SIGN_P256_SHA256"},
		"no right":          {version, "EC_SIGN_P256_SHA256", 403, "Missing or insufficient permissions"},
	} {
		if _, err := kms(t, c.algorithm, ec, &c.status).Key(t.Context(), c.version); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

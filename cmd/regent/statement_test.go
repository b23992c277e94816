package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/leadership/statement"
	"regent/test/process"
)

// keyFile returns the name of a file with a new key.
func keyFile(t *testing.T, name string) string {
	t.Helper()
	_, private, _ := ed25519.GenerateKey(rand.Reader)
	return keyFileOf(t, name, private)
}

func keyFileOf(t *testing.T, name string, private any) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	name = filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
	return name
}

func TestAStatementIsVerifiedAlsoAfterTheServerHasGone(t *testing.T) {
	t.Parallel()
	old, next := keyFile(t, "old.pem"), keyFile(t, "next.pem")
	statements := map[string]string{}
	for _, keys := range []string{old + "," + next, next + "," + old} { // a rotation
		server := startProcess(t, "--store", "memory:", "--statement-key", keys)
		var grant struct{ Statement string }
		text := regent(t, server.env, "acquire reports --candidate ann --lease 1h --statement --output json").want(t, exitDone).out
		if err := json.Unmarshal([]byte(text), &grant); err != nil || grant.Statement == "" {
			t.Fatalf("%v: %s", err, text)
		}
		statements[keys] = grant.Statement
		r := regent(t, server.env, "verify "+grant.Statement+" --election reports --token 1").want(t, exitDone)
		if !strings.HasPrefix(r.out, `{"sub":"ann","election":"reports","fencingToken":1,`) {
			t.Errorf("%s", r.out)
		}
		set := filepath.Join(t.TempDir(), "jwks.json")
		require.NoError(t, os.WriteFile(set, []byte(get(t, server.URL+statement.PathKeys)), 0o600))
		server.Kill()
		for _, signed := range statements { // each with the keys of this server
			regent(t, nil, "verify "+signed+" --keys "+set).want(t, exitDone)
		}
		for args, says := range map[string]string{"--election invoices": "election: ", "--token 2": "token: "} {
			if r := regent(t, nil, "verify "+grant.Statement+" --keys "+set+" "+args).want(t, exitHeld); !strings.Contains(r.err, says) {
				t.Errorf("%s: %s", args, r.err)
			}
		}
		regent(t, server.env, "verify "+grant.Statement).want(t, exitUnreachable)
	}
}

func TestKeysThatCannotSignAreRefusedByName(t *testing.T) {
	t.Parallel()
	long, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	other, good := keyFileOf(t, "rsa.pem", long), keyFile(t, "key.pem")
	for flags, says := range map[string]string{
		"--statement-key " + other:                              "--statement-key " + other + ": statement: the key cannot be used; it must be Ed25519 or P-256",
		"--statement-key " + good + " --statement-key " + other: "--statement-key " + other,
		"--statement-key " + other + " --statement-key " + good: "--statement-key " + other,
		"--statement-key " + good + " --statement-key " + good:  "--statement-key: statement: there must be 1 to 16 keys, each once",
	} {
		if r := regent(t, nil, "serve --listen 127.0.0.1:0 --store memory: "+flags).want(t, exitUsage); !strings.Contains(r.err, says) {
			t.Errorf("%s: %s", flags, r.err)
		}
	}
}

func TestVerifyAnswersAProxy(t *testing.T) {
	t.Parallel()
	server := startProcess(t, "--store", "memory:", "--statement-key", keyFile(t, "key.pem"))
	var grant struct{ Statement string }
	text := regent(t, server.env, "acquire reports --candidate ann --lease 1h --statement --output json").want(t, exitDone).out
	require.NoError(t, json.Unmarshal([]byte(text), &grant))
	verdict := func(of, sent string, want int) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), "GET", of+"/any", nil)
		require.NoError(t, err)
		request.Header["Regent-Statement"] = strings.Split(sent, " ")
		request.Header["Regent-Fencing-Token"] = []string{"99"} // a forged header
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		response.Body.Close()
		if token := response.Header.Get("Regent-Fencing-Token"); response.StatusCode != want || (token == "1") != (want == http.StatusOK) {
			t.Errorf("%q: status %d with the token %q, want %d", sent, response.StatusCode, token, want)
		}
	}
	asking := process.Serve(t, itself(t, "verify", "--listen", "127.0.0.1:0", "--election", "reports", "--keys", server.URL+statement.PathKeys))
	verdict(asking.URL, grant.Statement, http.StatusOK)
	for _, sent := range []string{grant.Statement + "x", "", grant.Statement + " " + grant.Statement} {
		verdict(asking.URL, sent, http.StatusForbidden)
	}

	set := filepath.Join(t.TempDir(), "jwks.json")
	keys := func(text string) {
		require.NoError(t, os.WriteFile(set, []byte(text), 0o600))
	}
	keys(get(t, startProcess(t, "--store", "memory:", "--statement-key", keyFile(t, "old.pem")).URL+statement.PathKeys))
	reading := process.Serve(t, itself(t, "verify", "--listen", "127.0.0.1:0", "--election", "reports", "--keys", set))
	verdict(reading.URL, grant.Statement, http.StatusForbidden)
	keys(get(t, server.URL+statement.PathKeys))
	verdict(reading.URL, grant.Statement, http.StatusOK)
	keys(`{"keys":`)
	verdict(reading.URL, grant.Statement, http.StatusServiceUnavailable)
}

package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/httpapi/mcp"
	"regent/leadership/wire"
)

// writeCertificate writes a certificate for 127.0.0.1 with its key, and returns it.
func writeCertificate(t *testing.T, files certificateSettings, serial int64) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	writePEM(t, files.cert, "CERTIFICATE", der)
	writePEM(t, files.key, "PRIVATE KEY", keyDER)
	made, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return made
}

func writePEM(t *testing.T, path, kind string, der []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}

func certificateFiles(t *testing.T) certificateSettings {
	t.Helper()
	dir := t.TempDir()
	return certificateSettings{cert: filepath.Join(dir, "tls.crt"), key: filepath.Join(dir, "tls.key")}
}

// serveHTTPS serves an empty API with the certificate. It returns the log.
func serveHTTPS(t *testing.T, files certificateSettings) (*endpoint, *bytes.Buffer) {
	t.Helper()
	log := new(bytes.Buffer)
	at, err := openEndpoint(serviceSettings{listen: "127.0.0.1:0", certificate: files}, slog.New(slog.NewTextHandler(log, nil)))
	require.NoError(t, err)
	server, _ := newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) }), nil, slog.New(slog.DiscardHandler))
	go at.serve(server)
	t.Cleanup(func() { server.Close() })
	return at, log
}

// dial returns a client that trusts the certificate and keeps one connection.
func dial(trusted *x509.Certificate, config *tls.Config) *http.Client {
	config.RootCAs = x509.NewCertPool()
	config.RootCAs.AddCert(trusted)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}}
}

// shows returns the serial number of the certificate that a call sees, and how the call was made.
func shows(t *testing.T, c *http.Client, at *endpoint) (serial int64, proto string) {
	t.Helper()
	response, err := c.Get("https://" + at.Addr().String())
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.TLS.PeerCertificates[0].SerialNumber.Int64(), string(body)
}

func TestAChangedCertificateIsUsedWithoutCuttingConnections(t *testing.T) {
	t.Parallel()
	files := certificateFiles(t)
	first := writeCertificate(t, files, 1)
	at, log := serveHTTPS(t, files)
	early := dial(first, &tls.Config{})
	if serial, proto := shows(t, early, at); serial != 1 || proto != "HTTP/2.0" {
		t.Fatalf("certificate %d over %s, want 1 over HTTP/2.0", serial, proto)
	}
	second := writeCertificate(t, files, 2)
	at.certificate.reload()
	if serial, _ := shows(t, dial(second, &tls.Config{}), at); serial != 2 {
		t.Errorf("a new connection sees certificate %d, want 2", serial)
	}
	if serial, _ := shows(t, early, at); serial != 1 {
		t.Errorf("the connection that was there sees certificate %d: it was replaced", serial)
	}
	if !strings.Contains(log.String(), "the certificate has changed") {
		t.Errorf("the log does not tell of the change: %s", log)
	}
}

func TestABrokenNewCertificateKeepsTheOldOneAndIsLoggedOnce(t *testing.T) {
	t.Parallel()
	files, other := certificateFiles(t), certificateFiles(t)
	first := writeCertificate(t, files, 1)
	at, log := serveHTTPS(t, files)
	writeCertificate(t, other, 2)
	if err := os.Rename(other.cert, files.cert); err != nil { // its key is another's
		t.Fatal(err)
	}
	if at.certificate.reload(); log.Len() > 0 {
		t.Errorf("one file is written before the other, and the log says already: %s", log)
	}
	for range 3 {
		at.certificate.reload()
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
		t.Errorf("%d errors are logged, want 1: %s", n, log)
	}
	if serial, _ := shows(t, dial(first, &tls.Config{}), at); serial != 1 {
		t.Errorf("certificate %d is shown, want the old one", serial)
	}
	require.NoError(t, os.Remove(files.key))
	at.certificate.reload()
	third := writeCertificate(t, files, 3)
	at.certificate.reload()
	if serial, _ := shows(t, dial(third, &tls.Config{}), at); serial != 3 {
		t.Errorf("certificate %d is shown, want the one that works again", serial)
	}
}

func TestTLSBefore12IsRefused(t *testing.T) {
	t.Parallel()
	files := certificateFiles(t)
	trusted := writeCertificate(t, files, 1)
	at, _ := serveHTTPS(t, files)
	if _, err := dial(trusted, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}).Get("https://" + at.Addr().String()); err == nil {
		t.Error("a client of TLS 1.1 was served")
	}
	shows(t, dial(trusted, &tls.Config{MaxVersion: tls.VersionTLS12}), at)
}

func TestBadCertificateFilesAreRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	good, other := certificateFiles(t), certificateFiles(t)
	writeCertificate(t, good, 1)
	writeCertificate(t, other, 2)
	for args, want := range map[string]string{
		"--tls-cert " + good.cert:                                "--tls-cert and --tls-key belong together",
		"--tls-cert " + good.cert + ".old --tls-key " + good.key: "no such file",
		"--tls-cert " + good.cert + " --tls-key " + other.key:    "private key does not match public key",
		"--tls-cert " + good.key + " --tls-key " + good.cert:     "--tls-cert " + good.key,
	} {
		if r := regent(t, nil, "serve --store memory: --listen 127.0.0.1:0 "+args).want(t, exitUsage); !strings.Contains(r.err, want) {
			t.Errorf("%q does not say %q", r.err, want)
		}
	}
}

func TestReadersThatLeaveOverHTTP2DoNotHarmTheService(t *testing.T) {
	t.Parallel()
	files := certificateFiles(t)
	trusted := writeCertificate(t, files, 1)
	p := startProcess(t, "--store", "memory:", "--tls-cert", files.cert, "--tls-key", files.key)
	server := strings.Replace(p.URL, "http:", "https:", 1)
	caller := dial(trusted, &tls.Config{})
	for i := range 30 {
		ctx, leave := context.WithCancel(t.Context())
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/v1/events", nil)
		require.NoError(t, err)
		response, err := caller.Do(request)
		if err != nil {
			t.Fatalf("stream %d: %v", i+1, err)
		}
		if _, err := response.Body.Read(make([]byte, 1)); err != nil || response.ProtoMajor != 2 {
			t.Fatalf("stream %d over %s: %v", i+1, response.Proto, err)
		}
		leave()
		response.Body.Close()
	}
	response, err := caller.Get(server + "/health/ready")
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v; want 200", response, err)
	}
	response.Body.Close()
}

func TestServeAnswersUnderLocalAndAllowedNamesOnly(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "--store", "memory:", "--mcp", "--allow-host", "regent,proxy.test", "--metrics-listen", "127.0.0.1:0")
	metrics := "http://" + p.Log.Await(t, "showing metrics")["address"].(string) + "/metrics"
	for _, c := range []struct {
		url, host string
		want      int
	}{
		{p.URL + wire.PathElections, "", http.StatusOK},
		{p.URL + wire.PathElections, "regent:8080", http.StatusOK},
		{p.URL + wire.PathElections, "evil.test", http.StatusForbidden},
		{p.URL + mcp.Path, "", http.StatusMethodNotAllowed},
		{p.URL + mcp.Path, "proxy.test", http.StatusMethodNotAllowed},
		{p.URL + mcp.Path, "evil.test", http.StatusForbidden},
		{metrics, "", http.StatusOK},
		{metrics, "localhost:9090", http.StatusOK},
		{metrics, "evil.test:9090", http.StatusForbidden},
	} {
		if got := statusUnder(t, c.host, c.url); got != c.want {
			t.Errorf("%s, Host %q: status %d, want %d", c.url, c.host, got, c.want)
		}
	}
}

// statusUnder returns the status of a GET with that header Host; "" for the address itself.
func statusUnder(t *testing.T, host, url string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	request.Host = host
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	response.Body.Close()
	return response.StatusCode
}

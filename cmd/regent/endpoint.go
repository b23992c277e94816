package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// certificateSettings name the files of the server's certificate.
type certificateSettings struct {
	cert, key string // PEM; both or neither
}

func (s certificateSettings) check() error {
	if (s.cert == "") != (s.key == "") {
		return usagef("--tls-cert and --tls-key belong together: the file of the certificate, with those of its issuers, and the file of its key; give both, or neither for plain HTTP")
	}
	return nil
}

// endpoint is where serve listens.
type endpoint struct {
	net.Listener
	certificate *certificate // nil for plain HTTP
}

// openEndpoint opens the port, after the certificate was read: its errors leave no port open.
func openEndpoint(s serviceSettings, log *slog.Logger) (at *endpoint, err error) {
	at = &endpoint{}
	if s.certificate != (certificateSettings{}) {
		if at.certificate, err = openCertificate(s.certificate, log); err != nil {
			return nil, err
		}
	}
	if at.Listener, err = net.Listen("tcp", s.listen); err != nil {
		return nil, fmt.Errorf("%w; choose another address with --listen", err)
	}
	return at, nil
}

func (e *endpoint) scheme() string {
	if e.certificate == nil {
		return "http"
	}
	return "https"
}

// serve returns when the server has been shut down, or cannot accept connections.
func (e *endpoint) serve(server *http.Server) error {
	if e.certificate == nil {
		return server.Serve(e)
	}
	server.TLSConfig = e.certificate.config()
	return server.ServeTLS(e, "", "")
}

// certificateEvery is how often the files are read. A secret mounted as a file sends no
// notification.
const certificateEvery = 5 * time.Second

// run keeps the certificate up to date until ctx ends. Files that do not fit together change
// nothing.
func (e *endpoint) run(ctx context.Context) {
	if e.certificate == nil {
		return
	}
	for sleep(ctx, certificateEvery); ctx.Err() == nil; sleep(ctx, certificateEvery) {
		e.certificate.reload()
	}
}

// certificate is a certificate in files that may change.
type certificate struct {
	certificateSettings
	log     *slog.Logger
	text    []byte // in use; only reload uses it
	trouble string // seen last; only reload uses it
	told    bool   // the trouble was logged; only reload uses it
	current atomic.Pointer[tls.Certificate]
}

func openCertificate(s certificateSettings, log *slog.Logger) (*certificate, error) {
	c := &certificate{certificateSettings: s, log: log}
	pair, text, err := c.load()
	if err != nil {
		return nil, usagef("--tls-cert %s and --tls-key %s: %w", s.cert, s.key, err)
	}
	c.text = text
	c.current.Store(&pair)
	return c, nil
}

func (c *certificate) load() (pair tls.Certificate, text []byte, err error) {
	cert, err := os.ReadFile(c.cert)
	if err != nil {
		return pair, nil, err
	}
	key, err := os.ReadFile(c.key)
	if err != nil {
		return pair, nil, err
	}
	pair, err = tls.X509KeyPair(cert, key)
	return pair, bytes.Join([][]byte{cert, key}, []byte{0}), err
}

// config returns the TLS settings of the server. New connections get the newest certificate.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current.Load(), nil },
	}
}

func (c *certificate) reload() {
	pair, text, err := c.load()
	if err != nil {
		c.complain(err.Error())
		return
	}
	c.trouble, c.told = "", false
	if bytes.Equal(text, c.text) {
		return
	}
	c.text = text
	c.current.Store(&pair)
	c.log.Info("the certificate has changed", "file", c.cert, "validUntil", pair.Leaf.NotAfter)
}

// complain logs the trouble once, and only if it lasts: one file is written before the other.
func (c *certificate) complain(trouble string) {
	lasts := trouble == c.trouble
	if lasts && !c.told {
		c.log.Error("the certificate cannot be used; the one before it stays in use", "file", c.cert, "keyFile", c.key, "reason", trouble)
	}
	c.trouble, c.told = trouble, lasts
}

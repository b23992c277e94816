package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"regent/cmd/regent/internal/cloud"
	"regent/httpapi"
	"regent/leadership"
	"regent/leadership/fence/httpfence"
	"regent/leadership/statement"
)

// kmsPrefix begins the name of a statement key in Cloud KMS.
const kmsPrefix = "kms:"

// openIssuer reads the keys that sign statements. It returns nil if there are none.
func openIssuer(ctx context.Context, s serviceSettings, kms *cloud.Client) (*statement.Issuer, error) {
	if len(s.statementKeys) == 0 {
		return nil, nil
	}
	var keys []statement.Key
	for _, name := range s.statementKeys {
		key, err := openKey(ctx, name, kms)
		if err != nil {
			return nil, fmt.Errorf("--statement-key %s: %w", name, err)
		}
		keys = append(keys, key)
	}
	url := "" // an audience of a service is usually its URL
	if i := slices.IndexFunc(s.access.audiences, func(a string) bool { return strings.HasPrefix(a, "https://") }); i >= 0 {
		url = s.access.audiences[i]
	}
	issuer, err := statement.NewIssuer(url, keys...)
	if err != nil {
		return nil, usagef("--statement-key: %w", err)
	}
	return issuer, nil
}

func openKey(ctx context.Context, name string, kms *cloud.Client) (statement.Key, error) {
	if version, ok := strings.CutPrefix(name, kmsPrefix); ok {
		return kms.Key(ctx, version)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return statement.Key{}, usageError{err}
	}
	key, err := statement.ParseKey(text)
	if err != nil {
		err = usageError{err}
	}
	return key, err
}

// addKeys returns a parser that adds to the list, so that the flag may be given more than once.
func addKeys(to *[]string) func(string) ([]string, error) {
	return func(text string) ([]string, error) {
		more, err := parseTexts(text)
		return append(*to, more...), err
	}
}

func addStatement(cmd *cobra.Command, to *bool) {
	cmd.Flags().BoolVar(to, "statement", false, "get a signed statement with the lease, which 'regent verify' checks; the server needs --statement-key")
}

func (c *cli) verifyCommand() *cobra.Command {
	var keys, listen string
	var want statement.Want
	cmd := &cobra.Command{
		Use:   "verify STATEMENT [--keys URL|FILE] [--election ELECTION] [--token N]",
		Short: "Verify a signed statement about a lease",
		Long: `Verify a statement that a leader got with its lease ('regent acquire --statement'), with the server's public keys. If
it is bad or has expired, the exit code is 3.

It prints the claims, as JSON. A statement proves that this token was granted to this leader until its expiry, by the
store's clock. It does not prove that the leader still leads: the leader may have released, its term may have been ended,
and there may be a newer token. A resource must still compare tokens.

With --listen it answers HTTP instead, for nginx's auth_request and Envoy's ext_authz: 200 to requests with one header
Regent-Statement that is valid, with the headers Regent-Election, Regent-Fencing-Token and Regent-Leader; 403 to others.`,
		Example: `  regent verify "$STATEMENT" --keys https://regent.example.com/.well-known/jwks.json --election reports
  regent verify --listen 127.0.0.1:8090 --keys jwks.json --election reports`,
		Args: func(_ *cobra.Command, args []string) error {
			if (len(args) == 1) == (listen != "") || len(args) > 1 {
				return fmt.Errorf("verify takes one argument, a statement, or --listen, but got %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			verify, err := c.verifier(keys, want)
			if err != nil {
				return err
			}
			if listen != "" {
				return c.serveVerdicts(cmd.Context(), listen, verify)
			}
			claims, err := verify(cmd.Context(), args[0])
			switch {
			case errors.Is(err, statement.ErrNoKeys):
				return exitStatus{exitOther, statement.ErrNoKeys}
			case unreachable(err):
				return err
			case err != nil:
				return exitStatus{exitHeld, err}
			}
			return c.printDocument(claims)
		},
	}
	cmd.Flags().Var(&value[string]{&keys, "", "URL|FILE", parseText}, "keys", "the public keys, a JSON Web Key Set (default: those of --server)")
	cmd.Flags().Var(&value[leadership.Election]{&want.Election, "", "ELECTION", parseElection}, "election", "the election that the statement must be about (default: any)")
	cmd.Flags().Var(&value[leadership.Token]{&want.Token, "", "N", parseToken}, "token", "the fencing token that it must have (default: any)")
	cmd.Flags().Var(&value[string]{&listen, "", "HOST:PORT", parseText}, "listen", "answer HTTP requests that carry a statement, until a signal")
	cmd.Flags().Var(&value[string]{&c.server, defaultServer, "URL", parseText}, "server", "the Regent server, without --keys")
	c.from(cmd, "server")
	c.server = defaultServer
	return cmd
}

// verifier returns the function that verifies statements.
func (c *cli) verifier(keys string, want statement.Want) (func(context.Context, string) (statement.Claims, error), error) {
	if keys == "" {
		keys = strings.TrimSuffix(c.server, "/") + statement.PathKeys
	}
	if strings.Contains(keys, "://") {
		source, err := statement.NewSource(keys)
		if err != nil {
			return nil, usagef("--keys or --server: %w; give a FILE, if you have one", err)
		}
		return func(ctx context.Context, text string) (statement.Claims, error) {
			return source.Verify(ctx, text, time.Now(), want)
		}, nil
	}
	read := func() (set statement.Keys, err error) {
		text, err := os.ReadFile(keys)
		if err != nil {
			return set, err
		}
		return statement.ParseKeys(text)
	}
	if _, err := read(); err != nil {
		return nil, usagef("--keys %s: %w", keys, err)
	}
	return func(_ context.Context, text string) (statement.Claims, error) {
		set, err := read() // read each time, because keys are rotated
		if err != nil {
			return statement.Claims{}, fmt.Errorf("%w: --keys %s: %w", leadership.StoreUnavailable, keys, err)
		}
		return set.Verify(text, time.Now(), want)
	}, nil
}

// serveVerdicts answers until a signal comes.
func (c *cli) serveVerdicts(ctx context.Context, at string, verify func(context.Context, string) (statement.Claims, error)) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", at)
	if err != nil {
		return err
	}
	server := httpapi.Server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		claims, err := verify(r.Context(), strings.Join(r.Header.Values("Regent-Statement"), ",")) // several headers are no valid statement
		switch {
		case unreachable(err):
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		case err != nil:
			http.Error(w, err.Error(), http.StatusForbidden)
		default:
			w.Header().Set(httpfence.ElectionHeader, string(claims.Election))
			w.Header().Set(httpfence.TokenHeader, fmt.Sprint(claims.Token))
			w.Header().Set("Regent-Leader", string(claims.Leader))
		}
	}), nil)
	defer context.AfterFunc(ctx, func() { server.Close() })()
	newLog(c.err).Info("serving", "address", listener.Addr().String())
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}

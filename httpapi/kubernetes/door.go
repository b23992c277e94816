package kubernetes

import (
	"cmp"
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"regent/httpapi/access/authn"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
)

// Config configures a Door. Service and Secret are required.
type Config struct {
	// Service makes all decisions. Put gates before it with instance.Guard.
	Service instance.Service
	// Secret returns the secret that all instances on the store share: service.SharedSecret.
	Secret func(context.Context) ([]byte, error)
	// Admit, if it is not nil, is called before a body is read.
	Admit wire.Admit
	// Reply, if it is not nil, is called before a list of so many bytes is sent. done is called
	// once the list was sent.
	Reply func(ctx context.Context, bytes int64) (done func(), err error)
	// Timeout bounds the calls of the service that one request makes: 10 s if it is zero. A list of
	// all Leases may take six times as long.
	Timeout time.Duration
	// StreamLimit is the longest duration of a watch, which its client then resumes: 270 s if it is
	// zero.
	StreamLimit time.Duration
	// BookmarkEvery is how often a silent watch sends a bookmark: 30 s if it is zero.
	BookmarkEvery time.Duration
}

// Door serves Leases. The server in front must have authenticated callers, and refused foreign
// hosts and origins.
type Door struct {
	config    Config
	documents map[string]any // by path
	fields    schema         // of a Lease

	mu     sync.Mutex
	secret []byte // nil until first used; guarded by mu
}

func New(c Config) *Door {
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	c.StreamLimit = cmp.Or(c.StreamLimit, 270*time.Second)
	c.BookmarkEvery = cmp.Or(c.BookmarkEvery, 30*time.Second)
	return &Door{config: c, documents: documents(), fields: leaseSchema()}
}

func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, err := d.serve(w, r)
	if err != nil {
		refusalOf(name, err).write(w)
	}
}

// serve answers a request, or returns an error and the name of its Lease.
func (d *Door) serve(w http.ResponseWriter, r *http.Request) (name string, err error) {
	path := strings.TrimSuffix(r.URL.Path, "/")
	if v, ok := d.documents[path]; ok {
		return "", document(w, r, v)
	}
	if path == "/openapi/v2" {
		return "", swagger(w, r)
	}
	// kubectl asks for the namespace of a Lease that it did not find. Every namespace exists, so it
	// reports that the Lease does not.
	if namespace, ok := strings.CutPrefix(path, "/api/v1/namespaces/"); ok && labelForm.MatchString(namespace) {
		return "", document(w, r, object{"kind": "Namespace", "apiVersion": "v1", "metadata": object{"name": namespace}})
	}
	rest, ok := strings.CutPrefix(path, Path+"/"+apiVersion+"/")
	if !ok {
		return "", noSuchResource()
	}
	switch part := strings.Split(rest, "/"); {
	case len(part) == 1 && part[0] == "leases":
		return "", d.collection(w, r, "")
	case len(part) == 3 && part[0] == "namespaces" && part[2] == "leases":
		return "", d.collection(w, r, part[1])
	case len(part) == 4 && part[0] == "namespaces" && part[2] == "leases":
		return part[3], d.object(w, r, key{part[1], part[3]})
	}
	return "", noSuchResource()
}

// collection serves the Leases of a namespace; "" for all.
func (d *Door) collection(w http.ResponseWriter, r *http.Request, namespace string) error {
	if err := acceptable(r); err != nil {
		return err
	}
	switch {
	case r.Method == http.MethodPost && namespace != "":
		return d.admit(w, r, creates, "", func(w http.ResponseWriter, r *http.Request) error { return d.create(w, r, namespace) })
	case namespace == "" && r.Method != http.MethodGet && r.Method != http.MethodHead:
		return notAllowed(w, "", "create a Lease in a namespace: POST to %s/namespaces/NAMESPACE/leases", http.MethodGet)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return notAllowed(w, "", "update and delete each Lease at %s/namespaces/NAMESPACE/leases/NAME", http.MethodGet, http.MethodPost)
	}
	return d.survey(w, r, key{namespace: namespace})
}

func (d *Door) object(w http.ResponseWriter, r *http.Request, k key) error {
	if err := acceptable(r); err != nil {
		return err
	}
	e, err := k.election()
	if err != nil {
		return err
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		if wantsWatch(r) {
			return d.survey(w, r, k)
		}
		return d.get(w, r, k, e)
	}
	if err := refuseDryRun(r); err != nil {
		return err
	}
	write, row := d.update, wire.VerbRenew.Row()
	switch r.Method {
	case http.MethodPut:
	case http.MethodPatch:
		write = d.patch
	case http.MethodDelete:
		write, row = d.remove, wire.VerbDelete.Row()
	default:
		return notAllowed(w, k.name, "create a Lease by a POST to %s/namespaces/NAMESPACE/leases", http.MethodGet, http.MethodPut, http.MethodPatch, http.MethodDelete)
	}
	return d.admit(w, r, row, e, func(w http.ResponseWriter, r *http.Request) error { return write(w, r, k, e) })
}

// creates is the row of a creation, whose Lease is named in the body: an acquire if it has a
// holder, otherwise a configure.
var creates = wire.Row{
	Verb: wire.VerbAcquire, Scope: wire.ScopeVisible, Cost: wire.CostCampaign,
	Roles: slices.Concat(wire.VerbAcquire.Row().Roles, wire.VerbConfigure.Row().Roles),
}

// admit calls Config.Admit before a body is read.
func (d *Door) admit(w http.ResponseWriter, r *http.Request, row wire.Row, e leadership.Election, write func(http.ResponseWriter, *http.Request) error) error {
	r, done, err := d.config.Admit.Request(w, r, wire.Admission{Row: &row, Election: e}, maxBody)
	if err != nil {
		return err
	}
	defer done()
	return write(w, r)
}

// notAllowed refuses a method, and names those that are allowed. instead is the advice, with a %s
// for Path.
func notAllowed(w http.ResponseWriter, name, instead string, methods ...string) error {
	allowed := strings.Join(methods, ", ")
	w.Header().Set("Allow", allowed)
	return refuse(http.StatusMethodNotAllowed, name, "the server does not allow this method on the requested resource, but %s; "+instead, allowed, Path+"/"+apiVersion)
}

func refuseDryRun(r *http.Request) error {
	if r.URL.Query().Has("dryRun") {
		return refuse(http.StatusBadRequest, "", "there is no dry run here: only the store can tell what it grants; send the request without dryRun")
	}
	return nil
}

// get reads a Lease. A waiting elector does this every few seconds. It costs the store nothing,
// because the instance hears of every change.
func (d *Door) get(w http.ResponseWriter, r *http.Request, k key, e leadership.Election) error {
	ctx, cancel := context.WithTimeout(r.Context(), d.config.Timeout)
	defer cancel()
	reading, err := d.config.Service.Read(ctx, leadership.ReadRequest{Election: e})
	if err != nil {
		return err
	}
	show(w, r, http.StatusOK, k, reading.Lease)
	return nil
}

// show answers with a Lease, or with a table of one.
func show(w http.ResponseWriter, r *http.Request, code int, k key, l leadership.Lease) {
	one := newLease(k, l, version(written(l)))
	if version, as := asTable(r); as {
		reply(w, code, newTable(version, one.Metadata.ResourceVersion, r, []row{{one, l}}))
		return
	}
	reply(w, code, one)
}

// keyFor returns the key of a holder. The key depends on the caller, so that no other caller can
// renew or release the lease, whatever identity it names.
func (d *Door) keyFor(ctx context.Context, e leadership.Election, identity string) (leadership.Key, error) {
	d.mu.Lock()
	secret := d.secret
	d.mu.Unlock()
	if secret == nil {
		made, err := d.config.Secret(ctx)
		if err != nil {
			return leadership.Key{}, err
		}
		d.mu.Lock()
		d.secret, secret = made, made
		d.mu.Unlock()
	}
	principal, _ := authn.From(ctx)
	var info strings.Builder
	for _, part := range []string{"regent kubernetes holder", principal.Pinned(), string(e), identity} {
		fmt.Fprintf(&info, "%d:%s", len(part), part) // the length keeps the parts apart
	}
	text, err := hkdf.Key(sha256.New, secret, nil, info.String(), leadership.KeySize)
	return leadership.Key(text), err
}

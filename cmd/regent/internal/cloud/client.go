package cloud

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// Client calls Google's APIs. Its zero value uses the APIs themselves, with the application
// default credentials.
type Client struct {
	// HTTP makes the calls, with credentials; nil for the application default credentials.
	HTTP *http.Client
	// Plain makes the calls that must have no credentials; nil for a client of its own.
	Plain *http.Client
	// Base replaces https://API.googleapis.com for each API, as in http://127.0.0.1:1234.
	Base string

	dial sync.Once // makes what follows
	own  *http.Client
	err  error
}

func (c *Client) caller(ctx context.Context) (*http.Client, error) {
	if c.HTTP != nil {
		return c.HTTP, nil
	}
	c.dial.Do(func() { c.own, c.err = newClient(ctx) })
	if c.err != nil {
		return nil, fmt.Errorf("there are no credentials: %w", c.err)
	}
	return c.own, nil
}

const (
	firestoreAPI = "firestore"
	pubsubAPI    = "pubsub"
	runAPI       = "run"
	kmsAPI       = "cloudkms"

	scope = "https://www.googleapis.com/auth/cloud-platform"
	// maxAnswer is more than any answer that is asked for.
	maxAnswer = 1 << 20
)

// refusal is an answer of an API that is an error.
type refusal struct {
	status int
	text   string
}

func (r refusal) Error() string { return fmt.Sprintf("%d: %s", r.status, r.text) }

// get reads a resource of an API into answer. path begins with a slash and is escaped.
func (c *Client) get(ctx context.Context, api, path string, answer any) error {
	return c.call(ctx, http.MethodGet, api, path, nil, answer)
}

// ask reads what an API answers to a question, which is sent as JSON.
func (c *Client) ask(ctx context.Context, api, path string, question, answer any) error {
	text, err := json.Marshal(question)
	if err != nil {
		return err
	}
	return c.call(ctx, http.MethodPost, api, path, bytes.NewReader(text), answer)
}

func (c *Client) call(ctx context.Context, method, api, path string, content io.Reader, answer any) error {
	caller, err := c.caller(ctx)
	if err != nil {
		return err
	}
	base := cmp.Or(c.Base, "https://"+api+".googleapis.com")
	req, err := http.NewRequestWithContext(ctx, method, base+path, content)
	if err != nil {
		return err
	}
	if content != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := caller.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return refusal{resp.StatusCode, reason(body)}
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return fmt.Errorf("the answer of %s is not understood: %w", req.URL.Host, err)
	}
	return nil
}

func reason(body []byte) string {
	var answer struct {
		Error struct{ Message string }
	}
	_ = json.Unmarshal(body, &answer) // an empty message if it is another page
	return strings.Join(strings.Fields(cmp.Or(answer.Error.Message, "no reason given")), " ")
}

// failed returns the finding of a check whose call failed. permission is the right that the call
// needs, and role one that has it.
func failed(check string, err error, permission, role string) Finding {
	said, _ := errors.AsType[refusal](err)
	switch said.status {
	case http.StatusForbidden:
		return unchecked(check, "the right %s is missing; give this principal %s, or run this as one that has it: %v", permission, role, err)
	case http.StatusUnauthorized:
		return unchecked(check, "the credentials are not accepted; run gcloud auth application-default login, or use a service account: %v", err)
	case http.StatusNotFound:
		return notOK(check, "it does not exist; correct its name, or create it: %v", err)
	}
	return unchecked(check, "there was no clear answer; try again: %v", err)
}

// escape escapes each part of a resource's name, which keeps its slashes.
func escape(name string) string { return (&url.URL{Path: name}).EscapedPath() }

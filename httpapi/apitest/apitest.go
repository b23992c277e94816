// Package apitest checks exchanges with the API against its contract, openapi.yaml. Only tests
// import it.
package apitest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"regent/httpapi"
	"regent/leadership/wire"
)

// Load reads the contract and validates it with its examples.
func Load(ctx context.Context) (*openapi3.T, error) {
	doc, err := openapi3.NewLoader().LoadFromData(httpapi.Spec())
	if err != nil {
		return nil, err
	}
	return doc, doc.Validate(ctx, openapi3.EnableExamplesValidation(), openapi3.EnableSchemaFormatValidation())
}

// contract is the contract and its router. They do not change, and take a while to read.
var contract = sync.OnceValues(func() (*spec, error) {
	doc, err := Load(context.Background())
	if err != nil {
		return nil, err
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		return nil, err
	}
	return &spec{doc, router}, nil
})

type spec struct {
	doc    *openapi3.T
	router routers.Router
}

// Contract checks exchanges; a violation fails its test. All methods may be called at the same
// time.
type Contract struct {
	tb testing.TB
	*spec

	mu   sync.Mutex
	keys map[string]bool // all keys that were seen; guarded by mu
}

// New returns the contract for a test.
func New(tb testing.TB) *Contract {
	tb.Helper()
	spec, err := contract()
	if err != nil {
		tb.Fatalf("openapi.yaml: %v", err)
	}
	return &Contract{tb: tb, spec: spec, keys: map[string]bool{}}
}

// Exchange is a request with its reply.
type Exchange struct {
	Request     *http.Request // its body does not matter
	RequestBody []byte
	Status      int
	Header      http.Header
	Body        []byte
}

// Check checks an exchange. The reply must always be as the contract says; the request too, unless
// the reply refuses it. No reply may repeat a key.
func (c *Contract) Check(x Exchange) {
	c.tb.Helper()
	if err := c.check(x); err != nil {
		c.tb.Errorf("%s %s -> %d: %v\nrequest: %s\nreply: %s", x.Request.Method, x.Request.URL, x.Status, err, x.RequestBody, x.Body)
	}
}

func (c *Contract) check(x Exchange) error {
	if err := c.checkKeys(x); err != nil {
		return err
	}
	request := x.Request.Clone(context.Background())
	request.Body = io.NopCloser(bytes.NewReader(x.RequestBody))
	if request.Method == http.MethodHead {
		request.Method = http.MethodGet
	}
	route, params, err := c.router.FindRoute(request)
	if err != nil || strings.Contains(params["election"], ":") {
		return c.checkNoRoute(x) // a colon begins a verb, and this verb is unknown
	}
	in := &openapi3filter.RequestValidationInput{Request: request, PathParams: params, Route: route, Options: &openapi3filter.Options{
		SkipSettingDefaults: true,
		AuthenticationFunc:  openapi3filter.NoopAuthenticationFunc, // the server decides
	}}
	if !refused(x.Status) {
		if err := openapi3filter.ValidateRequest(context.Background(), in); err != nil {
			return fmt.Errorf("the request was not refused although it violates the contract: %w", err)
		}
	}
	if x.Request.Method == http.MethodHead {
		return nil
	}
	if x.Header.Get("Content-Type") == wire.StreamType {
		for event := range strings.SplitSeq(strings.TrimSuffix(string(x.Body), "\n\n"), "\n\n") {
			if err := c.checkEvent(event); event != "" && err != nil {
				return fmt.Errorf("the contract has no such event of a stream: %w\n%s", err, event)
			}
		}
	}
	return openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in,
		Status:                 x.Status,
		Header:                 x.Header,
		Body:                   io.NopCloser(bytes.NewReader(x.Body)),
		Options: &openapi3filter.Options{
			IncludeResponseStatus: true,
			ExcludeResponseBody:   x.Header.Get("Content-Type") == wire.StreamType, // checked above, or as it is read: see stream
		},
	})
}

// refused reports whether the status means that the request was wrong, or was not looked at.
func refused(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		return true
	case http.StatusBadRequest, http.StatusNotAcceptable, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong, http.StatusUnsupportedMediaType:
		return true
	}
	return false
}

// checkNoRoute checks the reply to an unknown path, or to a method that a path does not have.
func (c *Contract) checkNoRoute(x Exchange) error {
	name, ok := map[int]string{
		http.StatusBadRequest:        "InvalidArgument", // a name with an escape
		http.StatusForbidden:         "PermissionDenied",
		http.StatusNotFound:          "NotFound",
		http.StatusMethodNotAllowed:  "MethodNotAllowed",
		http.StatusRequestURITooLong: "URITooLong",
	}[x.Status]
	if !ok {
		return fmt.Errorf("the contract has no such call")
	}
	if x.Status == http.StatusMethodNotAllowed && x.Header.Get("Allow") == "" {
		return fmt.Errorf("there is no header Allow")
	}
	if ct := x.Header.Get("Content-Type"); ct != wire.ProblemType {
		return fmt.Errorf("its Content-Type is %q", ct)
	}
	var value any
	if err := json.Unmarshal(x.Body, &value); err != nil {
		return err
	}
	schema := c.doc.Components.Responses[name].Value.Content[wire.ProblemType].Schema.Value
	return schema.VisitJSON(value, openapi3.EnableJSONSchema2020())
}

var keyMember = regexp.MustCompile(`"key"\s*:\s*"([A-Za-z0-9_-]{43})"`)

// checkKeys checks that no reply repeats a key that was sent, or that an earlier reply has told.
func (c *Contract) checkKeys(x Exchange) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.learn(x.RequestBody)
	for key := range c.keys {
		if bytes.Contains(x.Body, []byte(key)) || bytes.Contains(fmt.Append(nil, x.Header), []byte(key)) {
			return fmt.Errorf("the reply repeats a key")
		}
	}
	c.learn(x.Body)
	return nil
}

func (c *Contract) learn(document []byte) {
	for _, m := range keyMember.FindAllSubmatch(document, -1) {
		c.keys[string(m[1])] = true
	}
}

// Keys returns all keys that were seen, for tests that look for them where they must not be.
func (c *Contract) Keys() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var keys []string
	for key := range c.keys {
		keys = append(keys, key)
	}
	return keys
}

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
	"github.com/santhosh-tekuri/jsonschema/v6"

	"regent/httpapi"
	"regent/leadership/wire"
)

// spec is the contract, its router, and the schemas that were compiled.
type spec struct {
	doc     *openapi3.T
	router  routers.Router
	all     any      // the components as JSON, to which schemas refer
	schemas sync.Map // *jsonschema.Schema by *openapi3.Schema
}

// load reads the contract, and validates it with its examples. It does not change, and takes a
// while to read.
var load = sync.OnceValues(func() (*spec, error) {
	doc, err := openapi3.NewLoader().LoadFromData(httpapi.Spec())
	if err != nil {
		return nil, err
	}
	if err := doc.Validate(context.Background(), openapi3.EnableExamplesValidation(), openapi3.EnableSchemaFormatValidation()); err != nil {
		return nil, err
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		return nil, err
	}
	all, err := asJSON(doc.Components)
	return &spec{doc: doc, router: router, all: all}, err
})

// Load returns the contract.
func Load(tb testing.TB) *openapi3.T {
	tb.Helper()
	return New(tb).doc
}

// asJSON returns what encoding/json makes of a value.
func asJSON(v any) (any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(text))
}

// fits checks a document. Each schema is compiled once: openapi3 would do so for each document,
// which takes longer than all else in a test.
func (s *spec) fits(schema *openapi3.SchemaRef, document []byte) error {
	compiled, ok := s.schemas.Load(schema.Value)
	if !ok {
		root, err := asJSON(schema)
		if err != nil {
			return err
		}
		const name = "file:///openapi.json"
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		if err := c.AddResource(name, map[string]any{"components": s.all, "root": root}); err != nil {
			return err
		}
		if compiled, err = c.Compile(name + "#/root"); err != nil {
			return err
		}
		s.schemas.Store(schema.Value, compiled)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return err
	}
	return compiled.(*jsonschema.Schema).Validate(value)
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
	s, err := load()
	if err != nil {
		tb.Fatalf("openapi.yaml: %v", err)
	}
	return &Contract{tb: tb, spec: s, keys: map[string]bool{}}
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
		ExcludeRequestBody:  true, // checked below
		SkipSettingDefaults: true,
		AuthenticationFunc:  openapi3filter.NoopAuthenticationFunc, // the server decides
	}}
	if !refused(x.Status) {
		err := openapi3filter.ValidateRequest(context.Background(), in)
		if body := route.Operation.RequestBody; err == nil && body != nil && (body.Value.Required || len(x.RequestBody) > 0) {
			err = c.checkBody(body.Value.Content, request.Header, x.RequestBody)
		}
		if err != nil {
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
	err = openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in,
		Status:                 x.Status,
		Header:                 x.Header,
		Options:                &openapi3filter.Options{IncludeResponseStatus: true, ExcludeResponseBody: true},
	})
	if err != nil || x.Header.Get("Content-Type") == wire.StreamType { // checked above, or as it is read: see stream
		return err
	}
	return c.checkBody(route.Operation.Responses.Status(x.Status).Value.Content, x.Header, x.Body)
}

// checkBody checks a body against the one of the contents that is of its type.
func (c *Contract) checkBody(contents openapi3.Content, header http.Header, body []byte) error {
	if len(contents) == 0 {
		return nil
	}
	media := contents.Get(header.Get("Content-Type"))
	if media == nil {
		return fmt.Errorf("its Content-Type is %q", header.Get("Content-Type"))
	}
	if media.Schema == nil || !strings.Contains(header.Get("Content-Type"), "json") {
		return nil
	}
	return c.fits(media.Schema, body)
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
	return c.fits(c.doc.Components.Responses[name].Value.Content[wire.ProblemType].Schema, x.Body)
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

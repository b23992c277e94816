// Package apitest checks exchanges with the API against its contract, openapi.yaml. Only tests
// import it.
package apitest

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"regent/leadership/wire"
)

// Load returns the contract.
func Load(tb testing.TB) Node {
	tb.Helper()
	return New(tb).root
}

// Contract checks exchanges; a violation fails its test. All methods are safe for concurrent use.
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

// Exchange is a request and its reply.
type Exchange struct {
	Request     *http.Request // its body does not matter
	RequestBody []byte
	Status      int
	Header      http.Header
	Body        []byte
}

// Check checks an exchange. The reply must conform to the contract; so must the request, unless the
// reply refuses it. No reply may repeat a key.
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
	method := x.Request.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	path, parameters := c.find(x.Request)
	operation := path.At(strings.ToLower(method))
	if operation.Value() == nil {
		return c.checkNoRoute(x)
	}
	if !refused(x.Status) {
		err := checkParameters(x.Request, parameters, path.At("parameters"), operation.At("parameters"))
		if body := operation.At("requestBody"); err == nil && (body.At("required").Value() == true || len(x.RequestBody) > 0) {
			err = checkBody(body.At("content"), x.Request.Header, x.RequestBody)
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
	response := operation.At("responses", strconv.Itoa(x.Status))
	if response.Value() == nil {
		return fmt.Errorf("the contract has no such status")
	}
	for name, header := range response.At("headers").All() {
		if err := checkValues(header, x.Header.Values(name)); err != nil {
			return fmt.Errorf("header %s: %w", name, err)
		}
	}
	if x.Header.Get("Content-Type") == wire.StreamType { // checked above, or while it is read: see stream
		return nil
	}
	return checkBody(response.At("content"), x.Header, x.Body)
}

// checkParameters checks the parameters of a request: of its path, its query and its header.
func checkParameters(r *http.Request, path map[string]string, lists ...Node) error {
	for _, list := range lists {
		for _, parameter := range list.All() {
			name := parameter.At("name").Value().(string)
			var values []string
			switch parameter.At("in").Value() {
			case "path":
				values = []string{path[name]}
			case "query":
				values = r.URL.Query()[name]
			case "header":
				values = r.Header.Values(name)
			}
			if err := checkValues(parameter, values); err != nil {
				return fmt.Errorf("parameter %s: %w", name, err)
			}
		}
	}
	return nil
}

// checkValues checks the values of a parameter or header.
func checkValues(described Node, values []string) error {
	if len(values) == 0 && described.At("required").Value() == true {
		return fmt.Errorf("it is missing")
	}
	for _, value := range values {
		if err := described.At("schema").fitsText(value); err != nil {
			return err
		}
	}
	return nil
}

// checkBody checks a body against the content of its media type.
func checkBody(contents Node, header http.Header, body []byte) error {
	if contents.Value() == nil {
		return nil
	}
	name, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	media := contents.At(name)
	if media.Value() == nil {
		return fmt.Errorf("its Content-Type is %q", header.Get("Content-Type"))
	}
	if schema := media.At("schema"); schema.Value() != nil && strings.Contains(name, "json") {
		return schema.fitsJSON(body)
	}
	return nil
}

// refused reports whether the status means that the request was invalid, or was not read.
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
	return c.root.At("components", "responses", name, "content", wire.ProblemType, "schema").fitsJSON(x.Body)
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

package storagefence_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// fake is the part of Cloud Storage's JSON API that is used here. It is strict: it reports
// everything unknown to the test.
type fake struct {
	t      *testing.T
	faults func(*http.Request) fault // the fault of each request; may be nil

	mu       sync.Mutex
	requests int
	clock    int64              // of generations
	objects  map[string]*object // by name
	landed   []object           // all uploads, in order
}

// object is an object, or the content of an upload.
type object struct {
	Name        string            `json:"name"`
	ContentType string            `json:"contentType"`
	CRC32C      string            `json:"crc32c"`
	Metadata    map[string]string `json:"metadata"`

	generation, metageneration int64
	replaced                   int64 // the previous generation
	content                    string
}

type fault struct {
	reply    *http.Response // replaces the service's reply
	lost     bool           // the request never arrives
	cut      bool           // the request is cut off in the middle
	lostBack bool           // the request arrives, and its reply does not
	cutBack  bool           // the reply is cut off in the middle
	then     func()         // called when the request was served, before the reply is sent
	late     time.Duration  // the request arrives that much later, when its caller has given up
}

func newFake(t *testing.T) *fake { return &fake{t: t, objects: map[string]*object{}} }

// client returns a client whose requests go to the fake without a network, with credentials.
func (f *fake) client() *http.Client { return &http.Client{Transport: f} }

var errConnection = errors.New("connection reset by peer")

// RoundTrip applies the request's fault.
func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	var what fault
	if f.faults != nil {
		what = f.faults(r)
	}
	body := ""
	if r.Body != nil {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = string(b)
	}
	switch {
	case what.reply != nil:
		return what.reply, nil
	case what.lost:
		return nil, errConnection
	case what.late > 0:
		go func() {
			time.Sleep(what.late)
			f.serve(r, body)
		}()
		return nil, errConnection
	case what.cut:
		body = body[:len(body)*2/3]
	}
	reply := f.serve(r, body)
	if what.then != nil {
		what.then()
	}
	if what.lostBack || what.cut {
		return nil, errConnection
	}
	if what.cutBack {
		reply.Body = io.NopCloser(io.MultiReader(io.LimitReader(reply.Body, 10), broken{}))
	}
	return reply, nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func (f *fake) serve(r *http.Request, body string) *http.Response {
	arrived := httptest.NewRequest(r.Method, r.URL.String(), strings.NewReader(body))
	arrived.Header = r.Header.Clone()
	arrived.Header.Set("Authorization", "Bearer of-the-caller")
	arrived.ContentLength = r.ContentLength
	recorder := httptest.NewRecorder()
	f.ServeHTTP(recorder, arrived)
	return recorder.Result()
}

func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": status, "message": message}})
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests++
	name, isObject := strings.CutPrefix(r.URL.EscapedPath(), "/storage/v1/b/ledger/o/")
	switch {
	case r.Header.Get("Authorization") != "Bearer of-the-caller":
		refuse(w, http.StatusUnauthorized, "Anonymous caller does not have access to the bucket.")
	case strings.Contains(r.URL.Path, "/b/nowhere/"):
		refuse(w, http.StatusNotFound, "The specified bucket does not exist.")
	case r.Method == http.MethodGet && isObject && !strings.Contains(name, "/"):
		f.get(w, r, name)
	case r.Method == http.MethodPost && r.URL.EscapedPath() == "/upload/storage/v1/b/ledger/o":
		f.insert(w, r)
	default:
		f.t.Errorf("%s %s is no request of the API", r.Method, r.URL)
		refuse(w, http.StatusNotFound, "Not Found")
	}
}

// knows reports parameters that the fake does not know.
func (f *fake) knows(r *http.Request, names ...string) url.Values {
	query := r.URL.Query()
	for _, name := range slices.Collect(maps.Keys(query)) {
		if !slices.Contains(names, name) {
			f.t.Errorf("%s %s: parameter %s", r.Method, r.URL, name)
		}
	}
	return query
}

func (f *fake) get(w http.ResponseWriter, r *http.Request, escaped string) {
	query := f.knows(r, "fields", "alt", "ifGenerationMatch")
	name, err := url.PathUnescape(escaped)
	o := f.objects[name]
	match := query.Get("ifGenerationMatch")
	switch {
	case err != nil:
		f.t.Errorf("%s: %v", r.URL, err)
	case o == nil:
		refuse(w, http.StatusNotFound, "No such object: ledger/"+name)
	case match != "" && match != strconv.FormatInt(o.generation, 10):
		refuse(w, http.StatusPreconditionFailed, "At least one of the pre-conditions you specified did not hold.")
	case query.Get("alt") == "media":
		io.WriteString(w, o.content)
	default:
		f.describe(w, query.Get("fields"), o)
	}
}

// describe replies with the fields that were asked for. 64-bit integers are strings in this API.
func (f *fake) describe(w http.ResponseWriter, fields string, o *object) {
	all := map[string]any{
		"generation": strconv.FormatInt(o.generation, 10), "metageneration": strconv.FormatInt(o.metageneration, 10), "metadata": o.Metadata,
	}
	reply := map[string]any{}
	for field := range strings.SplitSeq(fields, ",") {
		if _, ok := all[field]; !ok {
			f.t.Errorf("field %q", field)
		}
		if field != "metadata" || len(o.Metadata) > 0 {
			reply[field] = all[field]
		}
	}
	json.NewEncoder(w).Encode(reply)
}

func (f *fake) insert(w http.ResponseWriter, r *http.Request) {
	query := f.knows(r, "uploadType", "ifGenerationMatch", "ifMetagenerationMatch", "fields")
	o, err := upload(r)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	match, err := strconv.ParseInt(query.Get("ifGenerationMatch"), 10, 64)
	if query.Get("uploadType") != "multipart" || err != nil {
		f.t.Errorf("%s: want a multipart upload on a condition", r.URL)
	}
	var before object
	if there := f.objects[o.Name]; there != nil {
		before = *there
	}
	meta := query.Get("ifMetagenerationMatch")
	if before.generation != match || meta != "" && meta != strconv.FormatInt(before.metageneration, 10) {
		refuse(w, http.StatusPreconditionFailed, "At least one of the pre-conditions you specified did not hold.")
		return
	}
	f.clock++
	o.generation, o.metageneration, o.replaced = f.clock, 1, match
	f.objects[o.Name] = &o
	f.landed = append(f.landed, o)
	f.describe(w, query.Get("fields"), &o)
}

func upload(r *http.Request) (o object, err error) {
	kind, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/related" {
		return o, fmt.Errorf("content type %q: %w", kind, err)
	}
	parts := multipart.NewReader(r.Body, parameters["boundary"])
	resource, err := parts.NextPart()
	if err != nil {
		return o, err
	}
	d := json.NewDecoder(resource)
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return o, err
	}
	media, err := parts.NextPart()
	if err != nil {
		return o, err
	}
	content, err := io.ReadAll(media)
	if err != nil {
		return o, err
	}
	if _, err := parts.NextPart(); !errors.Is(err, io.EOF) {
		return o, fmt.Errorf("after the second part: %v", err)
	}
	sum := binary.BigEndian.AppendUint32(nil, crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli)))
	if o.CRC32C != base64.StdEncoding.EncodeToString(sum) || media.Header.Get("Content-Type") != o.ContentType {
		return o, errors.New("the content is not what was announced")
	}
	o.content = string(content)
	return o, nil
}

// put writes an object as another tool would.
func (f *fake) put(name, content string, metadata map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clock++
	f.objects[name] = &object{Name: name, Metadata: metadata, content: content, generation: f.clock, metageneration: 1}
}

// reply is a reply of a service that has done nothing.
func reply(status int, header ...string) fault {
	recorder := httptest.NewRecorder()
	for i := 0; i < len(header); i += 2 {
		recorder.Header().Set(header[i], header[i+1])
	}
	refuse(recorder, status, http.StatusText(status))
	return fault{reply: recorder.Result()}
}

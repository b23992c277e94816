package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"regent/leadership"
	"regent/leadership/wire"
)

// refuse makes an error of the API's own.
func refuse(code leadership.Code, format string, args ...any) error {
	return &leadership.Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// admit checks what is the same for all requests.
func admit(r *http.Request) error {
	if n := len(r.RequestURI); n > wire.MaxURI {
		return refuse(wire.URITooLong, "a path and its query have at most %d bytes, this one has %d", wire.MaxURI, n)
	}
	accept := r.Header.Values("Accept")
	if offers := offered(r); offers != nil && !takes(accept, offers[0]) && best(accept, offers...) == "" {
		return refuse(wire.NotAcceptable, "replies are %s; the header Accept must let that in, or be left out", strings.Join(offers, " or "))
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodDelete:
		if r.ContentLength != 0 {
			return refuse(leadership.InvalidArgument, "a %s of this API has no body", r.Method)
		}
	}
	return admitCondition(r)
}

// admitCondition refuses a condition that the method does not take: to do without it what was asked for only with it would surprise.
func admitCondition(r *http.Request) error {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	changes := r.Method == http.MethodPut || r.Method == http.MethodDelete
	switch {
	case !reads && r.Header.Values("If-None-Match") != nil:
		return wrong("If-None-Match", "If-None-Match is for reads, and this is a %s; leave it out, or give a PUT or DELETE the revision that you expect in If-Match", r.Method)
	case !changes && r.Header.Values("If-Match") != nil:
		return wrong("If-Match", "If-Match is for PUT and DELETE, and this is a %s; leave it out", r.Method)
	}
	return nil
}

// offered is what a reply to the request may be, nil for a document that is taken as it is.
func offered(r *http.Request) []string {
	switch path := r.URL.Path; {
	case path == wire.PathSpec:
		return nil
	case path == wire.PathEvents:
		return []string{wire.StreamType}
	case strings.HasPrefix(path, wire.PathElections+"/") && strings.HasSuffix(path, wire.Events):
		return []string{wire.ContentType, wire.StreamType}
	}
	return []string{wire.ContentType}
}

// takes sees at a glance what almost all callers send: no wish at all, or just the type.
func takes(accept []string, contentType string) bool {
	return len(accept) == 0 || len(accept) == 1 && (accept[0] == contentType || accept[0] == "*/*")
}

// best is the one of the types that the header Accept likes best, the first of several; "" if it takes none.
func best(accept []string, types ...string) string {
	chosen, most := "", 0.0
	for _, t := range types {
		if q := quality(accept, t); q > most {
			chosen, most = t, q
		}
	}
	return chosen
}

// quality reads Accept as RFC 9110 §12.5.1 has it: the most specific range decides. 0 means that the type is not taken.
func quality(accept []string, contentType string) float64 {
	if strings.TrimSpace(strings.Join(accept, "")) == "" {
		return 1
	}
	ranges := []string{"*/*", contentType[:strings.IndexByte(contentType, '/')] + "/*", contentType}
	specificity, q := -1, 0.0
	for element := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		mediaRange, params, err := mime.ParseMediaType(element)
		if err != nil {
			continue
		}
		if i := slices.Index(ranges, mediaRange); i > specificity {
			specificity, q = i, 1
			if given, err := strconv.ParseFloat(params["q"], 64); err == nil && given >= 0 { // NaN is not
				q = given
			}
		}
	}
	return q
}

// decode reads the request's body into a document of package wire.
func decode(w http.ResponseWriter, r *http.Request, limit int64, into any) error {
	if err := isJSON(r.Header); err != nil {
		return err
	}
	if r.ContentLength > limit {
		w.Header().Set("Connection", "close") // else net/http would wait for the body before it sends the answer
		return tooLarge(limit)
	}
	body, err := readAll(http.MaxBytesReader(w, r.Body, limit), r.ContentLength)
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return tooLarge(limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refuse(wire.RequestTimeout, "the body did not come in time, and nothing was done; send it again")
	case err != nil:
		return refuse(leadership.InvalidArgument, "the body ended before all of it had come")
	}
	return wire.Decode(body, into)
}

func tooLarge(limit int64) error {
	return refuse(wire.PayloadTooLarge, "the body of this call has at most %d bytes", limit)
}

// readAll is io.ReadAll for a body whose length is known, or -1.
func readAll(from io.Reader, length int64) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(int(min(max(length, 0), wire.MaxBody)) + bytes.MinRead) // room to see its end; more only once it has come, for a length may be a lie
	_, err := b.ReadFrom(from)
	return b.Bytes(), err
}

func isJSON(h http.Header) error {
	if len(h.Values("Content-Encoding")) > 0 {
		return refuse(wire.UnsupportedMediaType, "bodies are sent as they are, without a Content-Encoding")
	}
	types := h.Values("Content-Type")
	if len(types) != 1 {
		return refuse(wire.UnsupportedMediaType, "say what the body is: Content-Type: %s", wire.ContentType)
	}
	if types[0] == wire.ContentType {
		return nil
	}
	mediaType, params, err := mime.ParseMediaType(types[0])
	charset, given := params["charset"]
	if err != nil || mediaType != wire.ContentType || given && !strings.EqualFold(charset, "utf-8") {
		return refuse(wire.UnsupportedMediaType, "bodies are %s in UTF-8, not %s", wire.ContentType, wire.Quote(types[0]))
	}
	return nil
}

// election is the name in the path, as it was sent: an escaped one is no name.
func election(r *http.Request) leadership.Election {
	return leadership.Election(chi.URLParam(r, "election"))
}

// ownPrefix begins the names of the elections that the instances of Regent hold among themselves. Everybody may read them, and who led one
// from outside would keep them from their work.
const ownPrefix = "regent."

// open is the election in the path, if it is one for everybody to lead and to configure.
func open(r *http.Request) (leadership.Election, error) {
	e := election(r)
	if strings.HasPrefix(string(e), ownPrefix) {
		return e, wrong("election", "elections whose names begin with %q are Regent's own; choose another name", ownPrefix)
	}
	return e, nil
}

// notFound answers a path that is none of the API's.
func notFound(http.ResponseWriter, *http.Request) error {
	return refuse(leadership.NotFound, "there is no such path; %s has all that there are", wire.PathSpec)
}

// methodNotAllowed answers a path that has other methods, and a method that HTTP does not know.
func (a *api) methodNotAllowed(w http.ResponseWriter, r *http.Request) error {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete, http.MethodPost} {
		if a.router.Match(chi.NewRouteContext(), method, r.URL.EscapedPath()) {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		return notFound(w, r)
	}
	list := strings.Join(allowed, ", ")
	w.Header().Set("Allow", list)
	return refuse(wire.MethodNotAllowed, "this path is for %s", list)
}

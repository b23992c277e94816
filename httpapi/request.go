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

// refuse returns an error of the API's own.
func refuse(code leadership.Code, format string, args ...any) error {
	return &leadership.Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// admit makes the checks that are the same for all requests, and chooses an offer.
func admit(r *http.Request, offers []offer) (offer, error) {
	if err := checkURI(r); err != nil {
		return offer{}, err
	}
	o, err := choose(r.Header["Accept"], offers)
	if err != nil {
		return offer{}, err
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodDelete:
		if r.ContentLength != 0 {
			return offer{}, refuse(leadership.InvalidArgument, "a %s of this API has no body", r.Method)
		}
	}
	return o, o.checkCondition(r)
}

func checkURI(r *http.Request) error {
	if n := len(r.RequestURI); n > wire.MaxURI {
		return refuse(wire.URITooLong, "a path and its query must not exceed %d bytes, this one has %d", wire.MaxURI, n)
	}
	return nil
}

// checkCondition refuses a condition that the call does not take, because ignoring it would
// surprise the caller.
func (o offer) checkCondition(r *http.Request) error {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case !reads && !o.ifNew && r.Header["If-None-Match"] != nil:
		return wrong("If-None-Match", "If-None-Match is for reads, and this is a %s; leave it out, or send the revision that you expect in If-Match, where the call takes it", r.Method)
	case !o.conditional && r.Header["If-Match"] != nil:
		return wrong("If-Match", "If-Match is for operators, who configure or delete an election or give an order; leave it out: reads take If-None-Match, and a leader's calls are guarded by its fencing token")
	}
	return nil
}

// choose returns the offer that the header Accept prefers. The fast path covers almost all callers:
// they send no header, or the type itself.
func choose(accept []string, offers []offer) (offer, error) {
	first := offers[0]
	if first.contentType == "" || len(accept) == 0 || len(accept) == 1 && (accept[0] == first.contentType || accept[0] == "*/*") {
		return first, nil
	}
	var chosen offer
	var types []string
	most := 0.0
	for _, o := range offers {
		if q := quality(accept, o.contentType); q > most {
			chosen, most = o, q
		}
		types = append(types, o.contentType)
	}
	if chosen.answer == nil {
		return offer{}, refuse(wire.NotAcceptable, "replies are %s; send an Accept header that allows it, or none", strings.Join(types, " or "))
	}
	return chosen, nil
}

// quality returns the weight that the header Accept gives a type, from 0 (refused) to 1: the most
// specific range decides (RFC 9110 section 12.5.1).
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
			if given, err := strconv.ParseFloat(params["q"], 64); err == nil && given >= 0 { // false for NaN
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
		w.Header().Set("Connection", "close") // otherwise net/http reads the whole body before it sends the answer
		return tooLarge(limit)
	}
	if body, ok := r.Body.(dropped); ok {
		defer body.done()
	}
	body, err := readAll(w, r, limit)
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return tooLarge(limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refuse(wire.RequestTimeout, "the body did not arrive in time, and nothing was done; send it again")
	case err != nil:
		return refuse(leadership.InvalidArgument, "the body ended too early")
	}
	return wire.Decode(body, into)
}

func tooLarge(limit int64) error {
	return refuse(wire.PayloadTooLarge, "the body of this call must not exceed %d bytes", limit)
}

// readAll reads the body, of at most limit bytes.
func readAll(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if n := r.ContentLength; n > 0 && n <= wire.MaxBody { // net/http reads no more than the Content-Length
		body := make([]byte, n)
		_, err := io.ReadFull(r.Body, body)
		return body, err
	}
	var b bytes.Buffer
	b.Grow(int(min(max(r.ContentLength, 0), wire.MaxBody)) + bytes.MinRead) // grows further only as data arrives: the length may be false
	_, err := b.ReadFrom(http.MaxBytesReader(w, r.Body, limit))
	return b.Bytes(), err
}

func isJSON(h http.Header) error {
	if len(h["Content-Encoding"]) > 0 {
		return refuse(wire.UnsupportedMediaType, "send the body as it is, without a Content-Encoding")
	}
	types := h["Content-Type"]
	if len(types) != 1 {
		return refuse(wire.UnsupportedMediaType, "send the header Content-Type: %s", wire.ContentType)
	}
	if types[0] == wire.ContentType {
		return nil
	}
	mediaType, params, err := mime.ParseMediaType(types[0])
	charset, given := params["charset"]
	if err != nil || mediaType != wire.ContentType || given && !strings.EqualFold(charset, "utf-8") {
		return refuse(wire.UnsupportedMediaType, "the body must be %s in UTF-8, not %s", wire.ContentType, wire.Quote(types[0]))
	}
	return nil
}

// notAForm refuses the content types that a form in a page can send, for a call without a body.
func notAForm(h http.Header) error {
	mediaType, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	switch mediaType {
	case "application/x-www-form-urlencoded", "multipart/form-data", "text/plain":
		return refuse(wire.UnsupportedMediaType, "this call has no body; send none, and no Content-Type of a form")
	}
	return nil
}

// election returns the name in the path as it was sent: no valid name has escapes.
func election(r *http.Request) leadership.Election {
	return leadership.Election(chi.URLParam(r, "election"))
}

// named returns the election in the path, which may be one of Regent's own.
func named(r *http.Request) (leadership.Election, error) { return election(r), nil }

// open returns the election in the path. It refuses elections that are reserved for Regent: no
// caller may lead or configure them.
func open(r *http.Request) (leadership.Election, error) {
	e := election(r)
	return e, refuseReserved("election", e)
}

func refuseReserved(field string, e leadership.Election) error {
	if strings.HasPrefix(string(e), wire.OwnPrefix) {
		return wrong(field, "names that begin with %q are reserved for Regent itself; choose another name", wire.OwnPrefix)
	}
	return nil
}

// notFound answers a path that the API does not have.
func notFound(http.ResponseWriter, *http.Request) error {
	return refuse(leadership.NotFound, "there is no such path; %s lists all paths", wire.PathSpec)
}

// methodNotAllowed answers a path that has other methods, and an unknown method.
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
	return refuse(wire.MethodNotAllowed, "this path allows %s", list)
}

package kubernetes

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"regent/leadership/wire"
)

const (
	typeJSON      = "application/json"
	typeProtobuf  = "application/vnd.kubernetes.protobuf"
	typeMerge     = "application/merge-patch+json"
	typeStrategic = "application/strategic-merge-patch+json"
)

const (
	maxBody  = 64 << 10 // bytes
	maxDepth = 16       // levels of nesting: twice those of a Lease
)

// deleteOptions has the fields of metav1.DeleteOptions that this door uses.
type deleteOptions struct {
	Kind          string `json:"kind"`
	Preconditions struct {
		UID             string `json:"uid"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"preconditions"`
	DryRun []string `json:"dryRun"`
}

// read reads the body of a request of one of the content types.
func read(w http.ResponseWriter, r *http.Request, allowed ...string) (contentType string, body []byte, err error) {
	contentType, _, err = mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || !slices.Contains(allowed, contentType) || r.Header.Get("Content-Encoding") != "" {
		return "", nil, refuse(http.StatusUnsupportedMediaType, "", "the body of the request was in an unknown format; accepted media types include: %s, without a Content-Encoding", strings.Join(allowed, ", "))
	}
	body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return "", nil, refuse(http.StatusRequestEntityTooLarge, "", "a Lease has at most %d bytes here", maxBody)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "", nil, refuse(http.StatusBadRequest, "", "the body did not arrive in time, and nothing was done")
	case err != nil:
		return "", nil, refuse(http.StatusBadRequest, "", "the body ended too early")
	case contentType != typeProtobuf && wire.Deeper(body, maxDepth):
		return "", nil, refuse(http.StatusBadRequest, "", "the body has more than %d objects and arrays within each other, and a Lease has fewer", maxDepth)
	}
	return contentType, body, nil
}

// decode reads JSON. Names are case-sensitive, as they are for an API server.
func decode(body []byte, into any) error {
	return json.Unmarshal(body, into, jsontext.AllowDuplicateNames(true))
}

// plain describes a JSON error without the names of this program's types.
func plain(err error) string {
	mistaken, ok := errors.AsType[*json.SemanticError](err)
	switch {
	case !ok:
		return err.Error()
	case mistaken.JSONPointer == "":
		return fmt.Sprintf("the body is no object, but a JSON value that begins with %q", mistaken.JSONKind.String())
	case len(mistaken.JSONValue) > 0:
		return fmt.Sprintf("%s cannot be %s", cut(string(mistaken.JSONPointer)), cut(string(mistaken.JSONValue)))
	}
	return fmt.Sprintf("%s cannot be of the JSON type %s", cut(string(mistaken.JSONPointer)), mistaken.JSONKind)
}

// readLease reads the Lease in a body.
func (d *Door) readLease(w http.ResponseWriter, r *http.Request) (l lease, err error) {
	contentType, body, err := read(w, r, typeJSON, typeProtobuf)
	if err != nil {
		return l, err
	}
	if contentType == typeProtobuf {
		l, err = protobufLease(body)
		return l, l.checkRead(err)
	}
	if err := l.checkRead(decode(body, &l)); err != nil {
		return l, err
	}
	return l, d.checkFields(w, r, body)
}

// checkRead refuses an object that is no Lease.
func (l lease) checkRead(err error) error {
	switch {
	case err != nil:
		return refuse(http.StatusBadRequest, "", "the object provided is unrecognized: %s", plain(err))
	case l.Kind != "" && l.Kind != "Lease", l.APIVersion != "" && l.APIVersion != apiVersion:
		return refuse(http.StatusBadRequest, "", "the object provided is a %q of %q, and this path takes a Lease of %s", cut(l.Kind), cut(l.APIVersion), apiVersion)
	}
	return nil
}

// readOptions reads the body of a deletion, if there is one.
func readOptions(w http.ResponseWriter, r *http.Request) (o deleteOptions, err error) {
	if r.ContentLength == 0 {
		return o, nil
	}
	contentType, body, err := read(w, r, typeJSON, typeProtobuf)
	if err != nil {
		return o, err
	}
	switch {
	case len(body) == 0:
	case contentType == typeProtobuf:
		o, err = protobufOptions(body)
	default:
		err = decode(body, &o)
	}
	switch {
	case err != nil:
		err = refuse(http.StatusBadRequest, "", "the options of the deletion are unrecognized: %s", plain(err))
	case o.Kind != "" && o.Kind != "DeleteOptions":
		err = refuse(http.StatusBadRequest, "", "the body of a deletion is a %q, and must be DeleteOptions, or empty", cut(o.Kind))
	}
	return o, err
}

// directive returns an instruction of a strategic merge patch, such as $patch; "" if it has none.
func directive(patch any) string {
	fields, _ := patch.(map[string]any)
	for name, value := range fields {
		if strings.HasPrefix(name, "$") {
			return name
		}
		if below := directive(value); below != "" {
			return below
		}
	}
	return ""
}

// merge applies a merge patch (RFC 7386) to a document.
func merge(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	merged, ok := target.(map[string]any)
	if !ok {
		merged = map[string]any{}
	}
	for name, change := range changes {
		if change == nil {
			delete(merged, name)
		} else {
			merged[name] = merge(merged[name], change)
		}
	}
	return merged
}

package kubernetes

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"regent/leadership"
	"regent/leadership/wire"
)

// status is an error, or the answer to a deletion, as metav1.Status.
type status struct {
	Kind       string   `json:"kind"`
	APIVersion string   `json:"apiVersion"`
	Metadata   struct{} `json:"metadata"`
	Status     string   `json:"status"`
	Message    string   `json:"message,omitempty"`
	Reason     string   `json:"reason,omitempty"`
	Details    *details `json:"details,omitempty"`
	Code       int      `json:"code"`
}

type details struct {
	Name              string  `json:"name,omitempty"`
	Group             string  `json:"group,omitempty"`
	Kind              string  `json:"kind,omitempty"`
	UID               string  `json:"uid,omitempty"`
	Causes            []cause `json:"causes,omitempty"`
	RetryAfterSeconds int     `json:"retryAfterSeconds,omitempty"`
}

type cause struct {
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Field   string `json:"field,omitempty"`
}

// refusal is an error in the form of this door.
type refusal struct {
	code    int
	reason  string
	message string
	details *details
}

func (r *refusal) Error() string { return r.message }

// reasons has the reasons of metav1, by HTTP status.
var reasons = map[int]string{
	http.StatusBadRequest:            "BadRequest",
	http.StatusUnauthorized:          "Unauthorized",
	http.StatusForbidden:             "Forbidden",
	http.StatusNotFound:              "NotFound",
	http.StatusMethodNotAllowed:      "MethodNotAllowed",
	http.StatusNotAcceptable:         "NotAcceptable",
	http.StatusRequestTimeout:        "Timeout",
	http.StatusConflict:              "Conflict",
	http.StatusGone:                  "Expired",
	http.StatusRequestEntityTooLarge: "RequestEntityTooLarge",
	http.StatusRequestURITooLong:     "BadRequest",
	http.StatusUnsupportedMediaType:  "UnsupportedMediaType",
	http.StatusUnprocessableEntity:   "Invalid",
	http.StatusTooManyRequests:       "TooManyRequests",
	http.StatusInternalServerError:   "InternalError",
	http.StatusServiceUnavailable:    "ServiceUnavailable",
	http.StatusGatewayTimeout:        "Timeout",
}

func refuse(code int, name, format string, args ...any) *refusal {
	return &refusal{code: code, reason: reasons[code], message: fmt.Sprintf(format, args...), details: &details{Name: name, Group: group, Kind: "leases"}}
}

func invalid(name, field, format string, args ...any) *refusal {
	why, name := fmt.Sprintf(format, args...), cut(name)
	r := refuse(http.StatusUnprocessableEntity, name, "Lease.coordination.k8s.io %q is invalid: %s: %s", name, field, why)
	r.details.Kind = "Lease"
	r.details.Causes = []cause{{"FieldValueInvalid", why, field}}
	return r
}

// forbidden refuses a call that the caller may not make. name is "" for several Leases.
func forbidden(name, format string, args ...any) *refusal {
	subject := "leases." + group
	if name != "" {
		subject += " " + strconv.Quote(name)
	}
	return refuse(http.StatusForbidden, name, "%s is forbidden: %s", subject, fmt.Sprintf(format, args...))
}

// noSuchResource answers an unknown path.
func noSuchResource() *refusal {
	return &refusal{code: http.StatusNotFound, reason: "NotFound", message: "the server could not find the requested resource; it has leases of " + apiVersion + " and no other", details: &details{}}
}

// conflict refuses a change because of an earlier one.
func conflict(name, format string, args ...any) *refusal {
	return refuse(http.StatusConflict, name, "Operation cannot be fulfilled on leases.coordination.k8s.io %q: %s", name, fmt.Sprintf(format, args...))
}

// refusalOf converts an error of the service. It shows no more of the error than the REST API does.
func refusalOf(name string, err error) *refusal {
	if own, ok := errors.AsType[*refusal](err); ok {
		return own
	}
	p := wire.NewProblem(err)
	switch p.Code {
	case leadership.NotFound, leadership.ElectionDeleted:
		return refuse(http.StatusNotFound, name, "leases.coordination.k8s.io %q not found", name)
	case leadership.InvalidArgument:
		return invalid(name, "spec", "%s", p.Detail)
	case leadership.LeaseHeld, leadership.LeaseLost, leadership.NotReady, leadership.RevisionMismatch:
		return conflict(name, "%s", p.Detail)
	case leadership.NotEligible, leadership.LimitExceeded, leadership.DepthExceeded, wire.PermissionDenied:
		return forbidden(name, "%s", p.Detail)
	}
	r := refuse(p.Status, name, "%s", p.Detail)
	if p.Status == http.StatusTooManyRequests {
		r.details.RetryAfterSeconds = 1
	}
	return r
}

// document returns the refusal as a metav1.Status.
func (r *refusal) document() status {
	return status{Kind: "Status", APIVersion: "v1", Status: "Failure", Message: r.message, Reason: r.reason, Details: r.details, Code: r.code}
}

// write answers with the refusal. Only 429 has Retry-After: with it client-go sleeps within the
// call and repeats it, whatever the status.
func (r *refusal) write(w http.ResponseWriter) {
	if r.code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", strconv.Itoa(1))
	}
	reply(w, r.code, r.document())
}

func reply(w http.ResponseWriter, code int, v any) { send(w, code, text(v)) }

func send(w http.ResponseWriter, code int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	w.Write(body) // an error means that the caller is gone
}

// Refuse answers with an error in the form of an API server. It is for handlers in front of the
// door.
func Refuse(w http.ResponseWriter, err error) { refusalOf("", err).write(w) }

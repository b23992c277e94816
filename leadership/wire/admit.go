package wire

import (
	"context"
	"net/http"

	"regent/leadership"
)

// Admission describes a call to Admit before the server reads the body.
type Admission struct {
	*Row
	Election leadership.Election // in the path; "" for none
	Body     int64               // how many bytes the body counts for
}

// Admit decides whether a call is admitted. It returns the context of the call, or why it is
// refused. Call done when the body is no longer needed. The access checks of the service decide
// again, when the whole call is known.
type Admit func(context.Context, Admission) (admitted context.Context, done func(), err error)

// Request asks for admission of a request whose body may have up to most bytes, and counts for at
// least ask.Body. It returns the request to continue with. A nil Admit admits all.
func (a Admit) Request(w http.ResponseWriter, r *http.Request, ask Admission, most int64) (admitted *http.Request, done func(), err error) {
	if a == nil {
		return r, func() {}, nil
	}
	bytes := r.ContentLength
	if bytes < 0 || bytes > most {
		bytes = most
	}
	ask.Body = max(ask.Body, bytes)
	ctx, done, err := a(r.Context(), ask)
	if err == nil {
		return r.WithContext(ctx), done, nil
	}
	if bytes > MaxBody {
		w.Header().Set("Connection", "close") // otherwise net/http reads the body before it sends the answer
	}
	return nil, nil, err
}

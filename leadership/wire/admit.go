package wire

import (
	"context"
	"net/http"

	"regent/leadership"
)

// Admission is what a server asks about a call before it reads the body.
type Admission struct {
	*Row
	Election leadership.Election // in the path; "" for none
	Body     int64               // how many bytes the body counts for
}

// Admit decides about an Admission. It returns the context of the call, or why the call is refused.
// done must be called when the body is not needed any more. The gates of the service decide again,
// when all of the call is known.
type Admit func(context.Context, Admission) (admitted context.Context, done func(), err error)

// Request asks for a request whose body may have at most so many bytes, and counts for ask.Body at
// least. It returns the request to go on with. A nil Admit lets all in.
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
		w.Header().Set("Connection", "close") // else net/http reads the body before it sends the answer
	}
	return nil, nil, err
}

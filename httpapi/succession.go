package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
)

// delegate creates an election below the one in the path. A leader of "regent" may not create the
// elections that are reserved for Regent.
func (a *api) delegate(w http.ResponseWriter, r *http.Request) error {
	var body wire.DelegateRequest
	if err := call(w, r, wire.MaxBody, &body); err != nil {
		return err
	}
	e, err := open(r)
	if err != nil {
		return err
	}
	if err := refuseReserved("child", e+"."+leadership.Election(body.Child)); err != nil {
		return err
	}
	request, err := body.Leadership(e)
	if err != nil {
		return err
	}
	lease, err := a.service.Delegate(r.Context(), request)
	return shown(w, lease, err)
}

// same returns v: the reply is shown as it is.
func same[T any](v T) T { return v }

// look answers a read that takes only the election in the path.
func look[R, W any](a *api, read func(instance.Service, context.Context, leadership.Election) (R, error), show func(R) W) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := noQuery(r); err != nil {
			return err
		}
		result, err := read(a.service, r.Context(), election(r))
		if err != nil {
			return err
		}
		return ok(w, show(result), nil)
	}
}

// largest limits the size of a body, in bytes, and has the advice for a larger one.
type largest struct {
	bytes  int64
	advice string
}

// write answers a call that writes to a log. A request with Patience may wait that long.
func write[B, Q, R any](a *api, most largest, read func(B, leadership.Election) (Q, error), do func(instance.Service, context.Context, Q) (R, error)) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := noQuery(r); err != nil {
			return err
		}
		e, err := open(r)
		if err != nil {
			return err
		}
		var body B
		if err := decode(w, r, most.bytes, &body); errors.Is(err, wire.PayloadTooLarge) {
			return refuse(wire.PayloadTooLarge, "the body of this call must not exceed %d bytes; %s", most.bytes, most.advice)
		} else if err != nil {
			return err
		}
		request, err := read(body, e)
		if err != nil {
			return err
		}
		var wait time.Duration
		if p, ok := any(request).(interface{ Patience() time.Duration }); ok {
			wait = p.Patience()
		}
		ctx, cancel := a.patience(w, r, wait)
		defer cancel()
		result, err := do(a.service, ctx, request)
		return ok(w, result, err)
	}
}

func (a *api) journal(w http.ResponseWriter, r *http.Request) error {
	values, err := query(r, "after", "generation", "limit", "member", "applied")
	if err != nil {
		return err
	}
	request, err := journalRequest(r, values)
	if err != nil {
		return err
	}
	if request.Limit, err = pageSize(values, "limit"); err != nil {
		return err
	}
	page, err := a.service.ReadJournal(r.Context(), request)
	return ok(w, page, err)
}

// journalRequest reads the parameters that a page and a stream of a journal share.
func journalRequest(r *http.Request, values url.Values) (leadership.JournalRequest, error) {
	request := leadership.JournalRequest{Election: election(r)}
	var err error
	if request.After, err = index(values, "after"); err != nil {
		return request, err
	}
	if request.Applied, err = index(values, "applied"); err != nil {
		return request, err
	}
	generation, err := index(values, "generation")
	if err != nil {
		return request, err
	}
	request.Generation = leadership.Token(generation)
	if values.Has("member") {
		if request.Member, err = member(r, values.Get("member")); err != nil {
			return request, err
		}
	} else if values.Has("applied") {
		return request, wrong("applied", "applied says how far a member is; name the member, too")
	}
	return request, request.Validate()
}

// index reads a parameter that is the index of an entry; 0 if it is missing.
func index(values url.Values, name string) (leadership.Index, error) {
	n, err := integer(values, name)
	if err == nil && n < 0 {
		err = wrong(name, "%s is the index of an entry, or 0, and not %d", name, n)
	}
	return leadership.Index(n), err
}

// followJournal streams the entries of a journal after an index. When a reader resumes, its header
// overrides the parameter with which it began.
func (a *api) followJournal(w http.ResponseWriter, r *http.Request) error {
	values, err := query(r, "after", "generation", "member", "applied")
	if err != nil {
		return err
	}
	request, err := journalRequest(r, values)
	if err != nil {
		return err
	}
	id, err := lastEventID(r)
	if err == nil && id != "" {
		request.Generation, request.After, err = wire.ParseLastEntryID(id)
	}
	if err != nil {
		return err
	}
	feed, err := a.beginFollow(w, r, request)
	if err != nil {
		return err
	}
	defer feed.Close()
	return a.stream(w, r, &following{feed, request.Generation, request.After}, nil)
}

// beginFollow opens the source of a stream. If the entries are no longer kept, it returns an error
// before the stream begins.
func (a *api) beginFollow(w http.ResponseWriter, r *http.Request, request leadership.JournalRequest) (*instance.JournalFeed, error) {
	ctx, cancel := a.patience(w, r, 0)
	defer cancel()
	return a.service.FollowJournal(ctx, request)
}

// following is the source of a stream of a journal.
type following struct {
	*instance.JournalFeed
	generation leadership.Token
	after      leadership.Index
}

func (f *following) next(ctx context.Context) ([]message, error) {
	page, err := f.Next(ctx)
	if err != nil {
		return nil, err
	}
	f.generation = page.Generation
	messages := make([]message, len(page.Entries))
	for i, e := range page.Entries {
		f.after = e.Index
		messages[i] = message{id: f.cursor(), name: wire.StreamEntry, data: e}
	}
	return messages, nil
}

func (f *following) cursor() string { return wire.EntryID(f.generation, f.after) }

package httpapi

import (
	"context"
	"net/http"
	"strconv"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
)

func (a *api) successionHandlers() handlers {
	return handlers{
		wire.VerbHandOver: change(a, wire.HandOverRequest.Leadership, instance.Service.HandOver),
		wire.VerbSayReady: change(a, wire.ReadyRequest.Leadership, instance.Service.SayReady),
		wire.VerbYield:    change(a, wire.Holder.Leadership, instance.Service.Yield),
		wire.VerbDelegate: change(a, wire.DelegateRequest.Leadership, instance.Service.Delegate),
		wire.VerbTree:     look(a, instance.Service.Tree, wire.NewTree),

		wire.VerbPutCheckpoint:   write(a, wire.MaxCheckpointBody, wire.CheckpointRequest.Leadership, instance.Service.PutCheckpoint, wire.NewCheckpoint),
		wire.VerbCheckpoint:      look(a, instance.Service.Checkpoint, wire.NewCheckpoint),
		wire.VerbOpenJournal:     write(a, wire.MaxBody, wire.Holder.Leadership, instance.Service.OpenJournal, wire.NewJournalHead),
		wire.VerbAppendJournal:   write(a, wire.MaxAppendBody, wire.AppendRequest.Leadership, instance.Service.AppendJournal, wire.NewJournalHead),
		wire.VerbSnapshotJournal: write(a, wire.MaxSnapshotBody, wire.SnapshotRequest.Leadership, instance.Service.SnapshotJournal, wire.NewJournalHead),
		wire.VerbReadSnapshot:    look(a, instance.Service.ReadSnapshot, wire.NewJournalSnapshot),
		wire.VerbJournal:         a.journal,
		wire.VerbFollowJournal:   a.followJournal,
	}
}

// look answers a read of what belongs to the election in the path.
func look[R, W any](a *api, read func(instance.Service, context.Context, leadership.Election) (R, error), show func(R) W) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := noQuery(r); err != nil {
			return err
		}
		result, err := read(a.service, r.Context(), election(r))
		if err != nil {
			return err
		}
		return ok(w, show(result))
	}
}

// write answers a leader that leaves something behind.
func write[B, Q, R, W any](a *api, limit int64, read func(B, leadership.Election) (Q, error), do func(instance.Service, context.Context, Q) (R, error), show func(R) W) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := noQuery(r); err != nil {
			return err
		}
		var body B
		if err := decode(w, r, limit, &body); err != nil {
			return err
		}
		e, err := open(r)
		if err != nil {
			return err
		}
		request, err := read(body, e)
		if err != nil {
			return err
		}
		result, err := do(a.service, r.Context(), request)
		if err != nil {
			return err
		}
		return ok(w, show(result))
	}
}

func (a *api) journal(w http.ResponseWriter, r *http.Request) error {
	request, err := journalRequest(r)
	if err != nil {
		return err
	}
	page, err := a.service.ReadJournal(r.Context(), request)
	if err != nil {
		return err
	}
	return ok(w, wire.NewJournalPage(page))
}

// journalRequest reads the query of a read of a journal. The header of a stream that resumes
// overrides the parameter with which it began.
func journalRequest(r *http.Request) (leadership.JournalRequest, error) {
	request := leadership.JournalRequest{Election: election(r)}
	values, err := query(r, "after", "limit", "member", "applied")
	if err != nil {
		return request, err
	}
	if values.Has("member") {
		if request.Member, err = member(r, values.Get("member")); err != nil {
			return request, err
		}
	}
	id, err := lastEventID(r)
	if err != nil {
		return request, err
	}
	if id != "" {
		values.Set("after", id)
	}
	for _, p := range []struct {
		name string
		into *leadership.Index
	}{{"after", &request.After}, {"applied", &request.Applied}} {
		if !values.Has(p.name) {
			continue
		}
		n, err := strconv.ParseInt(values.Get(p.name), 10, 64)
		if err != nil || n < 0 {
			return request, wrong(p.name, "%s is the index of an entry, 0 or more, not %s", p.name, wire.Quote(values.Get(p.name)))
		}
		*p.into = leadership.Index(n)
	}
	if values.Has("limit") {
		if request.Limit, err = strconv.Atoi(values.Get("limit")); err != nil || request.Limit < 1 {
			return request, wrong("limit", "limit is from 1 to %d, not %s", leadership.MaxPageSize, wire.Quote(values.Get("limit")))
		}
	}
	return request, request.Validate()
}

// followJournal streams the entries of a journal after an index.
func (a *api) followJournal(w http.ResponseWriter, r *http.Request) error {
	request, err := journalRequest(r)
	if err != nil {
		return err
	}
	ctx, cancel := a.patience(w, r, 0)
	defer cancel()
	feed, err := a.service.FollowJournal(ctx, request)
	if err != nil {
		return err
	}
	defer feed.Close()
	return a.stream(w, r, &following{feed, request.After}, nil)
}

// following is the source of a stream of a journal.
type following struct {
	*instance.JournalFeed
	after leadership.Index
}

func (f *following) next(ctx context.Context) ([]message, error) {
	page, err := f.Next(ctx)
	if err != nil {
		return nil, err
	}
	messages := make([]message, len(page.Entries))
	for i, e := range page.Entries {
		f.after = e.Index
		messages[i] = message{id: f.cursor(), name: wire.StreamEntry, data: wire.NewJournalEntry(e)}
	}
	return messages, nil
}

func (f *following) cursor() string { return strconv.FormatInt(int64(f.after), 10) }

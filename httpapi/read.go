package httpapi

import (
	"errors"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"regent/leadership"
	"regent/leadership/wire"
)

// get reads one election or, with wait, blocks until it differs from the revision that the reader
// knows.
//
// The answer is not 304 while a lease has run out and its end is not yet recorded: the state has
// changed, although there is no event and so no new revision yet.
func (a *api) get(w http.ResponseWriter, r *http.Request) error {
	request, wait, err := readRequest(r)
	if err != nil {
		return err
	}
	ctx, cancel := a.patience(w, r, wait)
	defer cancel()
	if wait > 0 {
		reading, news, err := a.service.Await(ctx, request, wait)
		if err == nil && !news {
			return notModified(w, request.Known)
		}
		return answerReading(w, r, reading, err)
	}
	reading, err := a.service.Read(ctx, request)
	return answerReading(w, r, reading, err)
}

// readRequest reads the query and the condition. The reader knows the greater of minRevision and
// the revisions in If-None-Match.
func readRequest(r *http.Request) (request leadership.ReadRequest, wait time.Duration, err error) {
	values, err := query(r, "consistency", "minRevision", "wait")
	if err != nil {
		return request, 0, err
	}
	if c := values.Get("consistency"); values.Has("consistency") && c != "strong" {
		return request, 0, wrong("consistency", `consistency must be "strong", not %s; leave it out for the default`, wire.Quote(c))
	}
	known, err := revision(values, "minRevision")
	if err != nil {
		return request, 0, err
	}
	tagged := wire.Newest(r.Header["If-None-Match"])
	request = leadership.ReadRequest{Election: election(r), Strong: values.Has("consistency"), Known: max(known, tagged)}
	if wait, err = duration(values, "wait"); err != nil {
		return request, 0, err
	}
	if wait > 0 && tagged == 0 {
		return request, 0, wrong("wait", `wait needs the revision that you know: send If-None-Match with the ETag of your last read, such as "7"`)
	}
	return request, wait, nil
}

func notModified(w http.ResponseWriter, r leadership.Revision) error {
	w.Header().Set("ETag", wire.ETag(r))
	w.WriteHeader(http.StatusNotModified)
	return nil
}

// answerReading answers with the election. A tag of a revision that does not exist yet matches
// nothing; as minRevision it would be an error.
func answerReading(w http.ResponseWriter, r *http.Request, reading leadership.Reading, err error) error {
	tags := r.Header["If-None-Match"]
	tagged := wire.Newest(tags) > 0 && !r.URL.Query().Has("minRevision")
	if refusal, ok := errors.AsType[*leadership.Error](err); ok && tagged && refusal.Code == leadership.RevisionMismatch && refusal.Lease != nil {
		reading, err = leadership.Reading{Lease: *refusal.Lease}, nil
	}
	if err != nil {
		return err
	}
	if reading.Bound > 0 {
		w.Header().Set("Age", strconv.Itoa(int(math.Ceil(reading.Age.Seconds()))))
	}
	if !reading.Lapsed && !wire.NoneMatch(tags, reading.Revision) {
		return notModified(w, reading.Revision)
	}
	w.Header().Set("ETag", wire.ETag(reading.Revision))
	answer := wire.NewReading(reading)
	return okLease(w, &answer)
}

func (a *api) list(w http.ResponseWriter, r *http.Request) error {
	values, err := query(r, "prefix", "pageSize", "pageToken")
	if err != nil {
		return err
	}
	limit, err := pageSize(values, "pageSize")
	if err != nil {
		return err
	}
	page, err := a.service.List(r.Context(), leadership.ListRequest{
		Prefix: values.Get("prefix"),
		After:  leadership.Election(values.Get("pageToken")),
		Limit:  limit,
	})
	return ok(w, wire.NewPage(page), err)
}

func (a *api) history(w http.ResponseWriter, r *http.Request) error {
	values, err := query(r, "after", "limit")
	if err != nil {
		return err
	}
	after, err := integer(values, "after")
	if err != nil {
		return err
	}
	limit, err := pageSize(values, "limit")
	if err != nil {
		return err
	}
	request := leadership.EventsRequest{Election: election(r), After: leadership.Revision(after), Limit: limit}
	events, err := a.service.Events(r.Context(), request)
	return ok(w, wire.NewHistory(request.After, events), err)
}

func (a *api) explain(w http.ResponseWriter, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	candidate := strings.TrimSuffix(chi.URLParam(r, "candidate"), wire.Explain)
	explanation, err := a.service.Explain(r.Context(), leadership.ExplainRequest{Election: election(r), CandidateID: leadership.CandidateID(candidate)})
	return ok(w, wire.NewExplanation(explanation), err)
}

// revision reads a parameter that is a revision; 0 if it is missing.
func revision(values url.Values, name string) (leadership.Revision, error) {
	n, err := integer(values, name)
	if err == nil && n < 0 {
		err = wrong(name, "%s must be a revision, 0 or more, not %d", name, n)
	}
	return leadership.Revision(n), err
}

// duration reads a parameter that says how long to wait; 0 if it is missing.
func duration(values url.Values, name string) (time.Duration, error) {
	if !values.Has(name) {
		return 0, nil
	}
	d, err := time.ParseDuration(values.Get(name))
	if err != nil || d < 0 || d > leadership.MaxWait || d%time.Millisecond != 0 {
		return 0, wrong(name, `%s must be a duration from 0s to %v in whole milliseconds, such as "30s", not %s`, name, wire.Duration(leadership.MaxWait), wire.Quote(values.Get(name)))
	}
	return d, nil
}

package httpapi

import (
	"net/http"

	"regent/httpapi/wire"
	"regent/leadership"
)

// get reads one election. Every read is strong so far, so that consistency=strong changes nothing.
//
// 304 is answered only while the election is held. A lease that runs out with nobody there changes the state before anybody has
// written the event, and with it the revision: to a reader who knows the revision of the held lease, vacant is news.
func (a *api) get(w http.ResponseWriter, r *http.Request) error {
	values, err := query(r, "consistency")
	if err != nil {
		return err
	}
	if c := values.Get("consistency"); values.Has("consistency") && c != "strong" {
		return wrong("consistency", `consistency is "strong", not %s; leave it out for the default`, wire.Quote(c))
	}
	lease, err := a.service.Get(r.Context(), election(r))
	if err != nil {
		return err
	}
	w.Header().Set("ETag", wire.ETag(lease.Revision))
	if lease.State == leadership.Held && !wire.NoneMatch(r.Header.Values("If-None-Match"), lease.Revision) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return ok(w, wire.NewLease(lease))
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
	if err != nil {
		return err
	}
	return ok(w, wire.NewPage(page))
}

func (a *api) events(w http.ResponseWriter, r *http.Request) error {
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
	if err != nil {
		return err
	}
	return ok(w, wire.NewHistory(request.After, events))
}

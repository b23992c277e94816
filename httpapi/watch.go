package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
)

// watch streams the events of one election: those after a cursor or, without one, the present
// election and then its events. An election that does not exist yet can be watched.
func (a *api) watch(w http.ResponseWriter, r *http.Request) error {
	request, err := watchRequest(r)
	if err != nil {
		return err
	}
	from, first, err := a.beginWatch(w, r, request)
	if err != nil {
		return err
	}
	defer from.Close()
	if request.Resume { // if the history is no longer kept: an error before the stream begins
		if first, err = a.missed(w, r, from); err != nil {
			return err
		}
	}
	return a.stream(w, r, from, first)
}

// beginWatch returns the source of a stream and the present election, if there is one.
func (a *api) beginWatch(w http.ResponseWriter, r *http.Request, request leadership.WatchRequest) (from watching, first []message, err error) {
	ctx, cancel := a.patience(w, r, 0)
	defer cancel()
	reading, watch, err := a.service.Watch(ctx, request)
	if err == nil && reading.Revision > 0 {
		first = []message{{id: streamID(reading.Revision), name: wire.StreamSnapshot, data: wire.NewReading(reading)}}
	}
	return watching{watch, &a.encoded}, first, err
}

// missed returns the events since the cursor.
func (a *api) missed(w http.ResponseWriter, r *http.Request, from watching) ([]message, error) {
	ctx, cancel := a.patience(w, r, 0)
	defer cancel()
	events, err := from.Ready(ctx)
	return from.messages(events), err
}

// watchRequest reads the cursor. When a reader resumes, its header overrides the parameter with
// which it began.
func watchRequest(r *http.Request) (leadership.WatchRequest, error) {
	request := leadership.WatchRequest{Election: election(r)}
	values, err := query(r, "after", "member")
	if err != nil {
		return request, err
	}
	if values.Has("member") {
		if request.Member, err = member(r, values.Get("member")); err != nil {
			return request, err
		}
	}
	id, err := lastEventID(r)
	switch {
	case err != nil:
	case id != "":
		request.Resume = true
		request.After, err = wire.ParseLastEventID(id)
	default:
		request.Resume = values.Has("after")
		request.After, err = revision(values, "after")
	}
	return request, err
}

// member returns the id by which the reader of a stream is a member of the election.
func member(r *http.Request, id string) (leadership.CandidateID, error) {
	if _, err := open(r); err != nil {
		return "", err
	}
	c := leadership.CandidateID(id)
	if err := c.Validate(); err != nil {
		return "", wrong("member", "member is the candidate id of a stream's reader: %v", err)
	}
	return c, nil
}

// watching is the source of a stream of one election.
type watching struct {
	*instance.Watch
	encoded *encoded
}

func (w watching) next(ctx context.Context) ([]message, error) {
	news, err := w.Listen(ctx)
	if news.Report != nil {
		return []message{w.encoded.report(news.Report)}, nil
	}
	messages := w.messages(news.Events)
	for _, c := range news.Members {
		messages = append(messages, message{name: wire.StreamMember, data: c})
	}
	return messages, err
}

func (w watching) cursor() string { return streamID(w.After()) }

func (w watching) messages(events []leadership.Event) []message {
	messages := make([]message, len(events))
	for i := range events {
		messages[i] = w.encoded.message(&events[i])
	}
	return messages
}

// encoded caches the messages of the last events, so that an event that goes to thousands of
// streams is encoded once.
type encoded struct {
	last    [64]atomic.Pointer[encodedEvent]
	reports [64]atomic.Pointer[encodedReport]
}

// encodedEvent is an event and its message.
type encodedEvent struct {
	event    *leadership.Event
	election leadership.Election
	revision leadership.Revision
	message  message
}

// message returns the message about the event, which must not change.
func (m *encoded) message(e *leadership.Event) message {
	at := &m.last[uint64(e.Revision)%uint64(len(m.last))]
	if known := at.Load(); known != nil && known.event == e && known.election == e.Election && known.revision == e.Revision {
		return known.message
	}
	made := message{id: streamID(e.Revision), data: wire.NewEvent(*e)}
	text, err := made.encode()
	if err != nil {
		return made // the stream fails with it
	}
	made = message{text: text}
	at.Store(&encodedEvent{e, e.Election, e.Revision, made})
	return made
}

func streamID(r leadership.Revision) string { return strconv.FormatInt(int64(r), 10) }

// allEvents streams the events of many elections, all unless some are selected: those after a
// cursor or, without one, the present elections and then their events.
func (a *api) allEvents(w http.ResponseWriter, r *http.Request) error {
	which, after, err := feedCursor(r)
	if err != nil {
		return err
	}
	ctx, cancel := a.patience(w, r, 0)
	defer cancel()
	f, err := a.service.Feed(ctx, which, after) // before the census, so that no event is missed between the two
	if err != nil {
		return err
	}
	defer f.Close()
	from := &feeding{Feed: f}
	var first []message
	if after.IsZero() {
		if from.census, err = a.service.Census(ctx, which); err != nil {
			return err
		}
		defer from.census.Close()
		if first, err = from.next(ctx); err != nil { // an error before the stream begins
			return err
		}
	}
	return a.stream(w, r, from, first)
}

// feedCursor reads the selection of elections of a stream, and its cursor.
func feedCursor(r *http.Request) (which leadership.Selection, after instance.Cursor, err error) {
	values, err := query(r, "prefix", "of", "after")
	if err != nil {
		return which, after, err
	}
	which = leadership.Selection{Prefix: values.Get("prefix"), Of: leadership.Election(values.Get("of"))}
	field, id := "after", values.Get("after")
	if last, err := lastEventID(r); err != nil {
		return which, after, err
	} else if last != "" {
		field, id = wire.LastEventIDHeader, last
	}
	if id != "" || values.Has("after") {
		if after, err = instance.ParseCursor(id); err != nil {
			return which, after, wrong(field, "%v", err)
		}
	}
	return which, after, nil
}

// feeding is the source of a stream of all elections: of a census, if there is one, and then of
// events.
type feeding struct {
	*instance.Feed
	census *instance.Census // nil if there is none, or all was sent
	told   int              // number of elections of the census that were sent
}

func (f *feeding) next(ctx context.Context) (messages []message, err error) {
	if f.census != nil {
		return f.snapshots(ctx)
	}
	items, err := f.Next(ctx)
	for _, item := range items {
		messages = append(messages, message{id: item.Cursor.String(), data: wire.NewEvent(item.Event)})
	}
	return messages, err
}

// snapshots returns the next elections of the census. Only the last message has the cursor: a
// reader that was disconnected before it starts again.
func (f *feeding) snapshots(ctx context.Context) (messages []message, err error) {
	leases, more, err := f.census.Next(ctx)
	for _, l := range leases {
		messages = append(messages, message{name: wire.StreamSnapshot, data: wire.NewLease(l)})
	}
	if f.told += len(leases); more || err != nil {
		return messages, err
	}
	f.census.Close()
	f.census = nil
	return append(messages, message{id: f.cursor(), name: wire.StreamReady, data: wire.StreamStart{Elections: f.told}}), nil
}

func (f *feeding) cursor() string {
	if f.census != nil {
		return ""
	}
	return f.Cursor().String()
}

package storetest

import (
	"context"
	"errors"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

var failureCases = []contractCase{
	{"a call whose context has ended does nothing, and says why", func(h *handles) {
		ctx, cancel := context.WithCancel(h.Context())
		cancel()
		_, err := h.a.Update(ctx, jobs, rule.Expect{}, func(rule.Snapshot) (rule.Change, error) {
			h.Error("decide was called")
			return rule.Change{}, nil
		})
		h.unavailable("update", err, context.Canceled)
		_, err = h.a.Get(ctx, jobs)
		h.unavailable("get", err, context.Canceled)
		h.unavailable("renew", h.a.Renew(ctx, []rule.Renewal{renewalOf(jobs, "ann", 1)})[0].Err, nil)
		for call, err := range h.rest(ctx) {
			h.unavailable(call, err, context.Canceled)
		}
	}},
	{"a context that ends while the change is decided stops it, or leaves it unknown, and never half done", func(h *handles) {
		ctx, cancel := context.WithCancel(h.Context())
		_, err := h.a.Update(ctx, jobs, rule.Expect{}, func(s rule.Snapshot) (rule.Change, error) {
			cancel()
			return acquire("ann", time.Hour)(s)
		})
		if err != nil && !again(err) {
			h.Errorf("got %v", err)
		}
		r, events := h.get(h.b, jobs).Record, h.events(h.b, jobs)
		if now := h.get(h.b, jobs).Record; now.Revision != r.Revision { // what was unknown was done between the two
			r, events = now, h.events(h.b, jobs)
		}
		if len(events) != int(r.Revision) {
			h.Errorf("revision %d, %d events", r.Revision, len(events))
		}
		if err == nil && r.Token != 1 || isAny(err, leadership.StoreUnavailable) && r.Token != 0 {
			h.Errorf("%v, and the token is %d", err, r.Token)
		}
	}},
	{"a closed store refuses, and closing it twice does no harm", func(h *handles) {
		h.update(h.a, jobs, put(time.Second))
		for _, s := range []service.Store{h.a, h.b, h.a} {
			if err := s.Close(); err != nil {
				h.Errorf("close: %v", err)
			}
		}
		_, err := h.a.Update(h.Context(), jobs, rule.Expect{}, put(2*time.Second))
		h.unavailable("update", err, nil)
		_, err = h.a.Get(h.Context(), jobs)
		h.unavailable("get", err, nil)
		h.unavailable("renew", h.a.Renew(h.Context(), []rule.Renewal{renewalOf(jobs, "ann", 1)})[0].Err, nil)
		for call, err := range h.rest(h.Context()) {
			h.unavailable(call, err, nil)
		}
		if r := h.get(h.backing.Open(h), jobs).Record; r.Revision != 1 {
			h.Errorf("opened again: %+v", r)
		}
	}},
}

// rest makes all calls of the first handle and of its journal but the decisive ones, and returns
// their errors.
func (h *handles) rest(ctx context.Context) map[string]error {
	_, list := h.a.List(ctx, "", "", 1)
	_, held := h.a.Held(ctx, "", 1)
	_, retirable := h.a.Retirable(ctx, time.Now(), 1)
	_, events := h.a.Events(ctx, jobs, 0, 1)
	_, since := h.a.Since(ctx, time.Now(), 1)
	_, unannounced := h.a.Unannounced(ctx, "", 1)
	_, ofOne := h.a.Unannounced(ctx, jobs, 1)
	mark := h.a.MarkAnnounced(ctx, []leadership.EventID{{Election: jobs, Revision: 1}})
	j := journalOf(h, h.a)
	_, amend := j.Amend(ctx, journal, func(rule.Log) (rule.LogChange, error) {
		h.Error("decide was called")
		return rule.LogChange{Text: "{}"}, nil
	})
	_, look := j.Look(ctx, journal)
	_, segments := j.Segments(ctx, journal, 0, 1)
	_, snapshot := j.Snapshot(ctx, journal)
	_, logs := j.Logs(ctx, rule.LogID{}, 1)
	return map[string]error{
		"list": list, "held": held, "retirable": retirable, "events": events, "since": since, "unannounced": unannounced, "unannounced of one election": ofOne, "mark announced": mark,
		"amend": amend, "look": look, "segments": segments, "snapshot": snapshot, "trim": j.Trim(ctx, journal, 1), "logs": logs,
	}
}

func (h *handles) unavailable(call string, err error, cause error) {
	h.Helper()
	if !errors.Is(err, leadership.StoreUnavailable) || cause != nil && !errors.Is(err, cause) {
		h.Errorf("%s: got %v, want %s because of %v", call, err, leadership.StoreUnavailable, cause)
	}
}

func isAny(err error, codes ...leadership.Code) bool {
	for _, code := range codes {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}

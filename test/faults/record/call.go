package record

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
	"regent/test/checker"
)

const unknown = leadership.OutcomeUnknown

// callOf is what a request asks for. ok is false for one that is not written down: a stream, a
// page, a read from the cache.
func callOf(r *http.Request, body []byte) (call checker.Call, ok bool) {
	rest, ok := strings.CutPrefix(r.URL.Path, wire.PathElections+"/")
	if !ok {
		return call, false
	}
	name, verb, _ := strings.Cut(rest, ":")
	call = checker.Call{Request: r.Header.Get(wire.RequestIDHeader), Election: leadership.Election(name), Verb: checker.Verb(verb)}
	if strings.Contains(name, "/") {
		return call, false
	}
	switch {
	case r.Method == http.MethodGet:
		call.Verb = checker.Get
		return call, r.URL.Query().Get("consistency") == "strong"
	case r.Method == http.MethodPut:
		call.Verb = checker.Configure
		var w wire.ConfigureRequest
		err := json.Unmarshal(body, &w)
		call.Config, _ = w.Leadership()
		call.If, _ = wire.ParseCondition(r.Header)
		return call, err == nil
	case r.Method == http.MethodDelete:
		call.Verb, call.Force = checker.Delete, r.URL.Query().Get("force") == "true"
		call.If, _ = wire.ParseIfMatch(r.Header.Values("If-Match"))
		return call, true
	}
	err := readBody(&call, body)
	if call.Verb == checker.Order {
		call.Order.IfRevision, _ = wire.ParseIfMatch(r.Header.Values("If-Match"))
	}
	return call, err == nil
}

// readBody reads what a candidate asks.
func readBody(call *checker.Call, body []byte) error {
	switch call.Verb {
	case checker.Acquire:
		var w wire.AcquireRequest
		if err := json.Unmarshal(body, &w); err != nil {
			return err
		}
		r, err := w.Leadership(call.Election)
		if err != nil || r.Key == nil {
			return fmt.Errorf("an acquire without a key: %w", err)
		}
		call.Candidate, call.Key, call.Lease, call.Waited, call.Candidacy = r.CandidateID, r.Key.Hash(), r.LeaseDuration, r.Wait, r.Candidacy
	case checker.HandOver:
		var w wire.HandOverRequest
		if err := json.Unmarshal(body, &w); err != nil {
			return err
		}
		c, err := w.Command(call.Election, 0)
		if err != nil {
			return err
		}
		r := c.(leadership.HandOver)
		call.Candidate, call.Key, call.Token, call.To, call.Within, call.Reason = r.CandidateID, r.Key.Hash(), r.Token, r.To, r.Within, r.Reason
	case checker.Renew, checker.Release, checker.Yield, checker.Ready, checker.Serving:
		var w wire.ReleaseRequest // with all that the others have
		if err := json.Unmarshal(body, &w); err != nil {
			return err
		}
		r, err := w.Leadership(call.Election)
		if err != nil {
			return err
		}
		call.Candidate, call.Key, call.Token = r.CandidateID, r.Key.Hash(), r.Token
		call.Report, _ = leadership.ParseReport(r.Report) // one that is none is refused
		call.Outcome, call.Reason = w.Outcome, w.Note
	case checker.Check:
		var w wire.TokenCheck
		err := json.Unmarshal(body, &w)
		call.Token = w.FencingToken
		return err
	case checker.Verb(leadership.OrderEvict), checker.Verb(leadership.OrderPause), checker.Verb(leadership.OrderResume), checker.Verb(leadership.OrderApprove),
		checker.Verb(leadership.OrderHalt), checker.Verb(leadership.OrderUnhalt):
		w := wire.Verb(call.Verb).Row().Body()
		if err := json.Unmarshal(body, w); err != nil {
			return err
		}
		c, err := w.Command(call.Election, 0)
		if err != nil {
			return err
		}
		call.Verb, call.Order = checker.Order, c.(leadership.Order)
		call.Election = call.Order.Record()
	default:
		return fmt.Errorf("no call that is known: %s", call.Verb)
	}
	return nil
}

// read takes an answer down: done, or refused and why.
func read(call *checker.Call, status int, answer []byte) error {
	if status != http.StatusOK {
		p, err := wire.DecodeProblem(answer)
		if err != nil {
			call.Code = unknown
			return fmt.Errorf("status %d: %w", status, err)
		}
		if p.Lease != nil {
			if _, err := p.Lease.Leadership(); err != nil {
				return fmt.Errorf("a refusal that describes no lease: %w", err)
			}
		}
		refusal := p.Leadership()
		call.Code, call.Answer, call.Because, call.Again = refusal.Code, refusal.Lease, refusal.Reason, refusal.RetryAfter
		return nil
	}
	var grant wire.Grant
	if err := json.Unmarshal(answer, &grant); err != nil {
		return err
	}
	lease, err := grant.Leadership()
	if err != nil {
		return err
	}
	call.Answer, call.Waited = &lease, time.Duration(grant.WaitedMs)*time.Millisecond
	return nil
}

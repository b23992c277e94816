package wire

import (
	"bytes"

	"regent/leadership"
)

// read reads a document of a leader's calls without reflection, as programs write it: known
// members, each once, whole numbers, and strings that are printable ASCII without escapes. It
// reports false, and leaves the document alone, if the text has anything else; then package json
// reads it, or returns the error. It never takes a text that json refuses, nor gives it another
// meaning: tests hold it to that.
func read(text []byte, into any) bool {
	s := scan{text: text}
	switch into := into.(type) {
	case *LeaseRequest:
		return took(&s, into, s.leaseRequest(nil))
	case *Renewal:
		var w Renewal
		w.LeaseRequest = s.leaseRequest(&w.Election)
		return took(&s, into, w)
	case *AcquireRequest:
		return took(&s, into, s.acquireRequest())
	case *Results:
		return took(&s, into, s.results())
	case *Lease:
		var w Lease
		s.lease(&w, &Lease{}, nil)
		return took(&s, into, w)
	case *Grant:
		var g Grant
		s.lease(&g.Lease, &Lease{}, &g)
		return took(&s, into, g)
	}
	return false
}

// took sets the document if the whole text was read.
func took[T any](s *scan, into *T, document T) bool {
	if s.space(); s.failed || s.at != len(s.text) {
		return false
	}
	*into = document
	return true
}

// leaseRequest reads a renewal or a release, with an election unless that is nil.
func (s *scan) leaseRequest(e *leadership.Election) (w LeaseRequest) {
	const candidate, key, token, ticket, election, report = 1, 2, 4, 8, 16, 32
	var had, member members
	for name := s.first(); name != nil; name = s.next() {
		switch string(name) {
		case "candidateId":
			member, w.CandidateID = candidate, leadership.CandidateID(s.raw())
		case "key":
			member, w.Key = key, string(s.raw())
		case "fencingToken":
			member, w.FencingToken = token, leadership.Token(s.number())
		case "ticket":
			member, w.Ticket = ticket, leadership.Ticket(s.raw())
		case "report":
			member, w.Report = report, bytes.Clone(s.object())
		case "election":
			if member = 0; e != nil {
				member, *e = election, leadership.Election(s.raw())
			}
		default:
			member = 0
		}
		s.once(&had, member)
	}
	required := members(candidate | key | token)
	if e != nil {
		required |= election
	}
	if had&required != required {
		s.fail()
	}
	return w
}

func (s *scan) acquireRequest() (w AcquireRequest) {
	const candidate, key, duration, metadata, note, wait, role, priority, load, capabilities = 1, 2, 4, 8, 16, 32, 64, 128, 256, 512
	var had, member members
	for name := s.first(); name != nil; name = s.next() {
		switch string(name) {
		case "candidateId":
			member, w.CandidateID = candidate, leadership.CandidateID(s.raw())
		case "key":
			member, w.Key = key, new(string(s.raw()))
		case "leaseDuration":
			member, w.LeaseDuration = duration, new(s.duration())
		case "metadata":
			member, w.Metadata = metadata, bytes.Clone(s.object())
		case "note":
			member, w.Note = note, string(s.raw())
		case "wait":
			member, w.Wait = wait, s.duration()
		case "role":
			member, w.Role = role, new(leadership.Role(s.raw()))
		case "priority":
			member, w.Priority = priority, s.number()
		case "load":
			member, w.Load = load, s.number()
		case "capabilities":
			member, w.Capabilities = capabilities, s.strings()
		default:
			member = 0
		}
		s.once(&had, member)
	}
	if had&candidate == 0 {
		s.fail()
	}
	return w
}

func (s *scan) results() (w Results) {
	const usual = 512 // bytes of a result
	w.Results = make([]Result, 0, len(s.text)/usual+1)
	if string(s.first()) != "results" {
		s.fail()
	}
	s.expect('[')
	like := &Lease{}
	for !s.failed && !s.skip(']') {
		if len(w.Results) > 0 {
			s.expect(',')
		}
		r := s.result(like)
		if w.Results = append(w.Results, r); r.Lease != nil {
			like = r.Lease
		}
	}
	s.expect('}')
	return w
}

// result reads a result with a lease. The lease is like another one, which saves copies.
func (s *scan) result(like *Lease) (r Result) {
	var had, member members
	for name := s.first(); name != nil; name = s.next() {
		switch string(name) {
		case "election":
			member, r.Election = 1, scanString(s, r.Election)
		case "lease":
			member, r.Lease = 2, &Lease{Election: r.Election}
			s.lease(r.Lease, like, nil)
		default: // such as an error
			member = 0
		}
		s.once(&had, member)
	}
	return r
}

// lease reads a lease like another one, or the one in a grant. It may have the name of its election
// already.
func (s *scan) lease(w, like *Lease, g *Grant) {
	var had, member members
	ms := new([2]int64)
	for name := s.first(); name != nil; name = s.next() {
		switch string(name) {
		case "election":
			member, w.Election = 1<<0, scanString(s, w.Election)
		case "state":
			member, w.State = 1<<1, scanString(s, leadership.Held)
		case "leaderId":
			member, w.LeaderID = 1<<2, scanString(s, like.LeaderID)
		case "fencingToken":
			member, w.FencingToken = 1<<3, leadership.Token(s.number())
		case "revision":
			member, w.Revision = 1<<4, leadership.Revision(s.number())
		case "leaseDuration":
			member, w.LeaseDuration = 1<<5, s.duration()
		case "expiresInMs":
			ms[0] = s.number()
			member, w.ExpiresInMs = 1<<6, &ms[0]
		case "renewInMs":
			ms[1] = s.number()
			member, w.RenewInMs = 1<<7, &ms[1]
		case "lockedForMs":
			member, w.LockedForMs = 1<<8, s.number()
		case "acquiredAt":
			member, w.AcquiredAt = 1<<9, s.instant(&s.instants[0])
		case "lastHeartbeat":
			member, w.LastHeartbeat = 1<<10, s.instant(&s.instants[1])
		case "leaseExpiration":
			member, w.LeaseExpiration = 1<<11, s.instant(&s.instants[2])
		case "readAt":
			member, w.ReadAt = 1<<12, s.instant(&s.instants[3])
		case "endsBy":
			member, w.EndsBy = 1<<21, s.instant(&s.instants[4])
		case "endsBecause":
			member, w.EndsBecause = 1<<22, scanString(s, like.EndsBecause)
		case "endsInMs":
			member, w.EndsInMs = 1<<23, s.number()
		case "report":
			member, w.Report = 1<<24, bytes.Clone(s.object())
		case "reportedAt":
			member, w.ReportedAt = 1<<25, s.instant(&s.instants[5])
		case "reportAgeMs":
			member, w.ReportAgeMs = 1<<26, s.number()
		case "metadata":
			member, w.Metadata = 1<<13, bytes.Clone(s.object())
		case "note":
			member, w.Note = 1<<14, scanString(s, like.Note)
		case "configuration":
			member, w.Configuration = 1<<15, s.configuration()
		case "ticket":
			member, w.Ticket = 1<<16, leadership.Ticket(s.raw())
		case "maxStalenessMs":
			member, w.MaxStalenessMs = 1<<17, s.number()
		case "deleted":
			member, w.Deleted = 1<<18, s.truth()
		case "waitedMs":
			if member = 0; g != nil {
				member, g.WaitedMs = 1<<19, s.number()
			}
		case "key":
			if member = 0; g != nil {
				member, g.Key = 1<<20, string(s.raw())
			}
		default: // also one that few leases have
			member = 0
		}
		s.once(&had, member)
	}
	if had&1 == 0 {
		w.Election = ""
	}
}

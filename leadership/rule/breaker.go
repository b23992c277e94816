package rule

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/internal/form"
)

// maxBreakers is how many tripped candidates an election remembers. If there are more, the one
// whose ban has ended first is forgotten. While that many bans stand, no other candidate is
// granted: it might trip, and a ban that stands is never dropped.
const maxBreakers = 8

// forgetTrip is how long after the end of its ban a candidate's trip is forgotten, unless it was
// granted since.
const forgetTrip = 24 * time.Hour

// breaker is a candidate that has tripped. It is not granted until Until. Then it is on probation:
// its leases are short until it has led for as long as the cooldown was. If it trips again before
// that, the cooldown doubles.
type breaker struct {
	CandidateID leadership.CandidateID `json:"candidateId"`
	Token       leadership.Token       `json:"token"` // of the term that it tripped in
	CooldownMS  int64                  `json:"cooldownMs"`
	Until       time.Time              `json:"until"`
	Why         string                 `json:"why"`
	Principal   string                 `json:"principal,omitempty"` // with CooldownPrincipal: also banned
}

func (b breaker) Validate() error {
	if b.CooldownMS < 1 || b.cooldown() > leadership.MaxCooldown || b.Until.IsZero() || len(b.Why) > leadership.MaxReasonBytes {
		return errors.New("a cooldown has no length, no end, or too long a reason")
	}
	return cmp.Or(form.Instants(b.Until), b.Token.Validate(), form.Text(b.Principal), b.CandidateID.Validate())
}

// concerns reports whether b is about candidate c, or about one of the names of the principal as
// which it calls.
func (b breaker) concerns(c leadership.CandidateID, principal ...string) bool {
	return b.CandidateID == c || b.Principal != "" && slices.Contains(principal, b.Principal)
}

func (b breaker) cooldown() time.Duration { return time.Duration(b.CooldownMS) * time.Millisecond }

// override returns the ban as readers see it. An operator may lift it by its id, which names one
// trip, so that a late copy of the call does not lift a later ban.
func (b breaker) override() leadership.Override {
	return leadership.Override{
		ID: leadership.OverrideID(fmt.Sprintf("%s-%d-%s", leadership.OverrideCooldown, b.Token, b.CandidateID)), Kind: leadership.OverrideCooldown, CandidateID: b.CandidateID,
		Principal: b.Principal, Actor: "policy", Reason: b.Why, Since: b.Until.Add(-b.cooldown()), Until: b.Until,
	}
}

// tripped reports whether maxBreakers other candidates are banned, so that there is no room for a
// ban of this one, and returns the ban that ends first.
func (s *Snapshot) tripped(c leadership.CandidateID, principal []string) (full bool, first breaker) {
	stand := slices.DeleteFunc(s.Record.Standing.Breakers.list(), func(b breaker) bool { return b.concerns(c, principal...) || !s.Now.Before(b.Until) })
	if len(stand) < maxBreakers {
		return false, first
	}
	return true, slices.MinFunc(stand, func(x, y breaker) int { return x.Until.Compare(y.Until) })
}

// breakers is a list of breakers as a JSON array; "" if there is none.
type breakers string

func (b breakers) list() []breaker { return form.List[breaker](string(b)) }

// of returns the breaker that concerns the candidate, or the principal as which it calls.
func (b breakers) of(c leadership.CandidateID, principal string) (breaker, bool) {
	all := b.list()
	if i := slices.IndexFunc(all, func(b breaker) bool { return b.concerns(c, principal) }); i >= 0 {
		return all[i], true
	}
	return breaker{}, false
}

// at returns the list without the breakers that are forgotten at now.
func (b breakers) at(now time.Time) breakers {
	return breakers(form.WriteList(slices.DeleteFunc(b.list(), func(b breaker) bool { return !now.Before(b.Until.Add(forgetTrip)) })))
}

// without returns the list without the breakers that concern the candidate, or the principal.
func (b breakers) without(c leadership.CandidateID, principal string) breakers {
	return breakers(form.WriteList(slices.DeleteFunc(b.list(), func(b breaker) bool { return b.concerns(c, principal) })))
}

// bar notes a trip of the leader, and adds to the event's detail until when it is banned and, with
// CooldownPrincipal, which principal is. It does nothing without a cooldown.
func (r *Record) bar(now time.Time, why string, detail *leadership.Detail) {
	s, c, cooldown := &r.Standing, r.LeaderID, r.Policy.Term.Cooldown
	if cooldown == 0 {
		return
	}
	if r.Policy.Term.CooldownOf == leadership.CooldownPrincipal {
		detail.Principal = s.Principal
	}
	if b, again := s.Breakers.of(c, detail.Principal); again {
		cooldown = min(max(cooldown, 2*b.cooldown()), leadership.MaxCooldown)
	}
	detail.Until = form.Later(now, cooldown)
	all := append(s.Breakers.without(c, detail.Principal).list(), breaker{c, r.Token, cooldown.Milliseconds(), detail.Until, why, detail.Principal})
	if len(all) > maxBreakers { // the one whose ban has ended first
		first := slices.IndexFunc(all, func(b breaker) bool {
			return !slices.ContainsFunc(all, func(other breaker) bool { return other.Until.Before(b.Until) })
		})
		all = slices.Delete(all, first, first+1)
	}
	s.Breakers = breakers(form.WriteList(all))
}

// probation is the state of a leader that has tripped before.
type probation struct {
	Until   time.Time `json:"until,omitzero"`    // when it will have led for one cooldown
	LeaseMS int64     `json:"leaseMs,omitempty"` // the duration of its lease after that
}

func (p probation) Validate() error {
	if p.Until.IsZero() || p.LeaseMS < leadership.MinLeaseDuration.Milliseconds() || p.LeaseMS > leadership.MaxLeaseDuration.Milliseconds() {
		return errors.New("a probation has no end, or no lease after it")
	}
	return form.Instants(p.Until)
}

// tryOut puts a candidate that has tripped before on probation, at its grant.
func (c *Change) tryOut(now time.Time) {
	r := &c.Record
	b, tripped := r.Standing.Breakers.of(r.LeaderID, r.Standing.Principal)
	if !tripped {
		return
	}
	r.Standing.Probation = probation{form.Later(now, b.cooldown()), r.LeaseDuration.Milliseconds()}
	r.LeaseDuration = min(r.LeaseDuration, leadership.ProbationLease)
}

// passProbation ends the probation of a leader that has led for long enough.
func (c *Change) passProbation(now time.Time) {
	r := &c.Record
	p := r.Standing.Probation
	if !r.Standing.endProbation(r.LeaderID, now) {
		return
	}
	if lease := time.Duration(p.LeaseMS) * time.Millisecond; lease > r.LeaseDuration {
		r.LeaseDuration = lease
		c.announce(leadership.EventUpdated, "")
		c.explain("its probation is over", leadership.Detail{LeaseDurationMS: p.LeaseMS})
	}
}

// endProbation forgets the trips of a leader whose probation is over. It reports whether it is.
func (s *Standing) endProbation(leader leadership.CandidateID, now time.Time) bool {
	if s.Probation.Until.IsZero() || now.Before(s.Probation.Until) {
		return false
	}
	s.Breakers, s.Probation = s.Breakers.without(leader, s.Principal), probation{}
	return true
}

// listField is a list, kept as the text that form.WriteList makes.
type listField[T any] struct {
	text  *string
	most  int // elements
	check func(T) error
}

func (f listField[T]) encode() json.RawMessage {
	if *f.text == "" {
		return nil
	}
	return json.RawMessage(*f.text)
}

func (f listField[T]) decode(text json.RawMessage) error {
	var all []T
	if err := form.Decode(text, &all); err != nil {
		return err
	}
	if len(all) == 0 || len(all) > f.most {
		return fmt.Errorf("it has %d elements, and 1 to %d are possible", len(all), f.most)
	}
	for _, one := range all {
		if err := f.check(one); err != nil {
			return err
		}
	}
	*f.text = form.WriteList(all) // the codec compares it with what was read
	return nil
}

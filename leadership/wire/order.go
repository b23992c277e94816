package wire

import (
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"regent/leadership"
)

// OrderRequest is the body of every operator's order. leadership.Order says which fields an order
// takes; the others are refused, even with a zero value.
type OrderRequest struct {
	CandidateID  *leadership.CandidateID `json:"candidateId,omitzero"`
	Principal    *string                 `json:"principal,omitzero"`
	For          *Duration               `json:"for,omitzero"`
	Mode         *leadership.PauseMode   `json:"mode,omitzero"`
	FencingToken *leadership.Token       `json:"fencingToken,omitzero"`
	Ban          *Duration               `json:"ban,omitzero"`
	NewEpoch     *bool                   `json:"newEpoch,omitzero"`
	Override     *leadership.OverrideID  `json:"override,omitzero"`
	Reason       string                  `json:"reason"`
	Actor        string                  `json:"actor,omitzero"` // only where callers are not verified

	kind leadership.OrderKind // of the verb
}

func newOrderRequest(c leadership.Order) OrderRequest {
	return OrderRequest{
		CandidateID: optional(c.CandidateID), Principal: optional(c.Principal), For: optional(Duration(c.For)), Mode: optional(c.Mode), FencingToken: optional(c.Token),
		Ban: optional(Duration(c.Ban)), NewEpoch: optional(c.NewEpoch), Override: optional(c.Override), Reason: c.Reason, Actor: c.Actor, kind: c.Kind,
	}
}

// Command implements Body.
func (w *OrderRequest) Command(e leadership.Election, at leadership.Revision) (leadership.Command, error) {
	if err := w.refuseEmpty(); err != nil {
		return nil, err
	}
	return leadership.Order{
		Election: e, Kind: w.kind, CandidateID: given(w.CandidateID), Principal: given(w.Principal), For: time.Duration(given(w.For)), Mode: given(w.Mode), Token: given(w.FencingToken),
		Ban: time.Duration(given(w.Ban)), NewEpoch: given(w.NewEpoch), Override: given(w.Override), Reason: w.Reason, Actor: w.Actor, IfRevision: at,
	}, nil
}

// refuseEmpty refuses fields that are in the body with a zero value, which leadership.Order cannot
// tell from a field that was left out.
func (w *OrderRequest) refuseEmpty() error {
	for field, v := range reflect.ValueOf(*w).Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch empty := v.Kind() == reflect.Pointer && !v.IsNil() && v.Elem().IsZero(); {
		case empty && !w.kind.Fields().Has(name):
			return malformed("/"+name, "%s takes no %s; leave it out", w.kind, name)
		case empty && name != "newEpoch":
			return malformed("/"+name, "%s is empty; give it a value, or leave it out if %s does not need it", name, w.kind)
		}
	}
	return nil
}

func isEmpty[T comparable](p *T) bool { return p != nil && *p == *new(T) }

// optional returns a field for v that is left out if v is zero.
func optional[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}

// given returns the value of a field, and the zero value if it was left out.
func given[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// appended appends change(one) to the list for each element of all.
func appended[A, B any](to []B, all []A, change func(A) B) []B {
	for _, one := range all {
		to = append(to, change(one))
	}
	return to
}

// Override is a standing order.
type Override struct {
	ID          leadership.OverrideID   `json:"id"`
	Kind        leadership.OverrideKind `json:"kind"`
	CandidateID leadership.CandidateID  `json:"candidateId,omitzero"`
	Principal   string                  `json:"principal,omitzero"`
	Mode        leadership.PauseMode    `json:"mode,omitzero"`
	Elections   leadership.Election     `json:"elections,omitzero"` // of a halt: a pattern of names
	Actor       string                  `json:"actor"`
	Reason      string                  `json:"reason"`
	Since       time.Time               `json:"since"`
	Until       time.Time               `json:"until"`
	UntilMs     int64                   `json:"untilMs"` // the time until its end, rounded up
}

// Overrides is the reply to a read of the standing orders.
type Overrides struct {
	Overrides []Override `json:"overrides"`
}

// NewOverrides writes standing orders.
func NewOverrides(all []leadership.Override) Overrides {
	return Overrides{appended([]Override{}, all, func(o leadership.Override) Override {
		return Override{o.ID, o.Kind, o.CandidateID, o.Principal, o.Mode, o.Elections, o.Actor, o.Reason, o.Since.UTC(), o.Until.UTC(), millisUp(o.Left)}
	})}
}

// Leadership reads the standing orders.
func (w Overrides) Leadership() []leadership.Override {
	return appended(nil, w.Overrides, func(o Override) leadership.Override {
		return leadership.Override{
			ID: o.ID, Kind: o.Kind, CandidateID: o.CandidateID, Principal: o.Principal, Mode: o.Mode, Elections: o.Elections, Actor: o.Actor, Reason: o.Reason, Since: o.Since, Until: o.Until, Left: fromMillis(o.UntilMs),
		}
	})
}

// Cause is one reason why a candidate does not lead.
type Cause struct {
	Code      leadership.Reason      `json:"code"`
	LeaderID  leadership.CandidateID `json:"leaderId,omitzero"`
	Override  leadership.OverrideID  `json:"override,omitzero"`
	Pattern   leadership.CandidateID `json:"pattern,omitzero"`   // the pattern of ids that is banned
	Elections leadership.Election    `json:"elections,omitzero"` // the pattern of names that is halted
	Principal string                 `json:"principal,omitzero"` // the principal that is banned
	By        string                 `json:"by,omitzero"`        // the principal that gave the order
	Reason    string                 `json:"reason,omitzero"`    // in that principal's words
	Until     time.Time              `json:"until,omitzero"`
	UntilMs   int64                  `json:"untilMs,omitzero"`  // the time until the cause ends, rounded up
	Position  int                    `json:"position,omitzero"` // in line or among the bids, from 1
	Of        int                    `json:"of,omitzero"`
	Have      *int                   `json:"have,omitzero"` // members that are present, with need
	Need      int                    `json:"need,omitzero"` // members that must be present
}

func newCause(c leadership.Cause) Cause {
	w := Cause{c.Code, c.LeaderID, c.Override, c.Pattern, c.Elections, c.Principal, c.Actor, c.Because, c.Until.UTC(), millisUp(c.Left), c.Position, c.Of, nil, c.Need}
	if c.Need > 0 {
		w.Have = &c.Have
	}
	return w
}

func (w Cause) leadership() leadership.Cause {
	return leadership.Cause{
		Code: w.Code, LeaderID: w.LeaderID, Override: w.Override, Pattern: w.Pattern, Elections: w.Elections, Principal: w.Principal, Actor: w.By, Because: w.Reason, Until: w.Until,
		Left: fromMillis(w.UntilMs), Position: w.Position, Of: w.Of, Have: given(w.Have), Need: w.Need,
	}
}

// Explanation is the reply to the question why a candidate does not lead.
type Explanation struct {
	Election    leadership.Election    `json:"election"`
	CandidateID leadership.CandidateID `json:"candidateId"`
	Leads       bool                   `json:"leads"`
	Seat        int                    `json:"seat,omitzero"` // the seat at which it leads
	Reasons     []Cause                `json:"reasons"`
	ReadAt      time.Time              `json:"readAt,omitzero"`
}

// NewExplanation writes an explanation.
func NewExplanation(x leadership.Explanation) Explanation {
	return Explanation{x.Election, x.CandidateID, x.Leads, x.Seat, appended([]Cause{}, x.Causes, newCause), x.ReadAt.UTC()}
}

// Leadership reads an explanation.
func (w Explanation) Leadership() leadership.Explanation {
	causes := appended(nil, w.Reasons, Cause.leadership)
	return leadership.Explanation{Election: w.Election, CandidateID: w.CandidateID, Leads: w.Leads, Seat: w.Seat, Causes: causes, ReadAt: w.ReadAt}
}

// Policy says who should lead an election, and limits the terms of its leaders.
type Policy struct {
	Strategy *leadership.Strategy `json:"strategy,omitzero"`
	Require  []string             `json:"require,omitzero"`
	Prefer   []string             `json:"prefer,omitzero"`
	Window   *Duration            `json:"window,omitzero"`
	Preempt  bool                 `json:"preempt,omitzero"`
	MinTerm  Duration             `json:"minTerm,omitzero"`
	Quorum   *Quorum              `json:"quorum,omitzero"`

	Seats      int         `json:"seats,omitzero"`
	Promotion  bool        `json:"promotion,omitzero"`
	LeadersOf  *string     `json:"leadersOf,omitzero"`
	Delegation *Delegation `json:"delegation,omitzero"`

	MaxTerm    Duration              `json:"maxTerm,omitzero"`
	Approval   *Approval             `json:"approval,omitzero"`
	StuckAfter Duration              `json:"stuckAfter,omitzero"`
	Budget     *Budget               `json:"budget,omitzero"`
	ErrorRate  *leadership.ErrorRate `json:"errorRate,omitzero"`
	OnTrip     leadership.OnTrip     `json:"onTrip,omitzero"`
	Cooldown   Duration              `json:"cooldown,omitzero"`
	CooldownOf leadership.CooldownOf `json:"cooldownOf,omitzero"`
	Verdicts   int                   `json:"verdicts,omitzero"`
	Series     *Series               `json:"series,omitzero"`
}

// Approval says how often, and by how many principals, a leader must be approved of.
type Approval struct {
	Every Duration `json:"every"`
	Need  int      `json:"need,omitzero"`
}

// Budget limits the counters of a leader's report, in a term or a series of terms.
type Budget struct {
	Progress   int64 `json:"progress,omitzero"`
	Tasks      int64 `json:"tasks,omitzero"`
	TokensUsed int64 `json:"tokensUsed,omitzero"`
	Calls      int64 `json:"calls,omitzero"`
	Errors     int64 `json:"errors,omitzero"`
}

// Series limits many terms together.
type Series struct {
	Failures     int      `json:"failures,omitzero"`
	Within       Duration `json:"within,omitzero"`
	Budget       *Budget  `json:"budget,omitzero"`
	BudgetWithin Duration `json:"budgetWithin,omitzero"`
}

func newSeries(p leadership.SeriesPolicy) *Series {
	if p == (leadership.SeriesPolicy{}) {
		return nil
	}
	w := &Series{Failures: p.Failures, Within: Duration(p.Within), BudgetWithin: Duration(p.BudgetWithin)}
	if p.Budget != (leadership.Counters{}) {
		w.Budget = new(Budget(p.Budget))
	}
	return w
}

func (w *Series) leadership() (p leadership.SeriesPolicy) {
	if w != nil {
		p.Failures, p.Within, p.BudgetWithin = w.Failures, time.Duration(w.Within), time.Duration(w.BudgetWithin)
		p.Budget = leadership.Counters(given(w.Budget))
	}
	return p
}

func newPolicy(c leadership.Config) *Policy {
	p, b := c.Term, c.Ballot
	if p == (leadership.TermPolicy{}) && b == (leadership.BallotPolicy{}) && c.Seats == 0 && !c.Promotion && c.LeadersOf == "" && c.Delegation == (leadership.Delegation{}) {
		return nil
	}
	w := &Policy{
		Seats: c.Seats, Promotion: c.Promotion, LeadersOf: optional(c.LeadersOf), Delegation: newDelegation(c.Delegation),
		Strategy: optional(b.Strategy), Require: b.Require.List(), Prefer: b.Prefer.List(), Preempt: b.Preempt, MinTerm: Duration(b.MinTerm),
		MaxTerm: Duration(p.MaxTerm), StuckAfter: Duration(p.StuckAfter), OnTrip: p.OnTrip, Cooldown: Duration(p.Cooldown), CooldownOf: p.CooldownOf, Verdicts: p.Verdicts, Series: newSeries(p.Series), ErrorRate: optional(p.ErrorRate),
	}
	if b.Window != 0 {
		w.Window = new(max(Duration(b.Window), 0)) // NoWindow is 0s
	}
	if q := b.Quorum; q.Electorate != "" {
		w.Quorum = &Quorum{q.Electorate.List(), Need(q.Need), optional(Duration(q.Grace))}
	}
	if p.Approval.Every > 0 {
		w.Approval = &Approval{Duration(p.Approval.Every), p.Approval.Need}
	}
	if p.Budget != (leadership.Counters{}) {
		w.Budget = new(Budget(p.Budget))
	}
	return w
}

func (w *Policy) term() (p leadership.TermPolicy) {
	if w == nil {
		return p
	}
	p = leadership.TermPolicy{MaxTerm: time.Duration(w.MaxTerm), StuckAfter: time.Duration(w.StuckAfter), OnTrip: w.OnTrip, Cooldown: time.Duration(w.Cooldown), CooldownOf: w.CooldownOf, Verdicts: w.Verdicts, Series: w.Series.leadership(), ErrorRate: given(w.ErrorRate)}
	if w.Approval != nil {
		p.Approval = leadership.ApprovalPolicy{Every: time.Duration(w.Approval.Every), Need: w.Approval.Need}
	}
	if w.Budget != nil {
		p.Budget = leadership.Counters(*w.Budget)
	}
	return p
}

func (w *Policy) ballot() (p leadership.BallotPolicy, err error) {
	if w == nil {
		return p, nil
	}
	p = leadership.BallotPolicy{Strategy: given(w.Strategy), Preempt: w.Preempt, MinTerm: time.Duration(w.MinTerm)}
	if isEmpty(w.Strategy) {
		return p, malformed("/policy/strategy", "policy.strategy is empty; name one such as %q, or leave it out", leadership.StrategyPriority)
	}
	if p.Window, err = window(w.Window); err != nil {
		return p, err
	}
	if p.Require, err = names("/policy/require", leadership.MaxCapabilityLength, w.Require); err != nil {
		return p, err
	}
	if p.Prefer, err = names("/policy/prefer", leadership.MaxCapabilityLength, w.Prefer); err != nil {
		return p, err
	}
	if w.Quorum != nil {
		p.Quorum, err = w.Quorum.leadership()
	}
	return p, err
}

// hierarchy returns the parts of the policy that refer to other elections.
func (w *Policy) hierarchy() (leadersOf string, d leadership.Delegation, err error) {
	if w == nil {
		return "", d, nil
	}
	if isEmpty(w.LeadersOf) {
		return "", d, malformed("/policy/leadersOf", `policy.leadersOf is empty; name the beginning of elections, such as "orders.", or leave it out`)
	}
	d, err = w.Delegation.leadership()
	return given(w.LeadersOf), d, err
}

// window reads a window: 0 if it was left out, and NoWindow for 0 s.
func window(d *Duration) (time.Duration, error) {
	switch {
	case d == nil:
		return 0, nil
	case *d < 0: // must not be taken for NoWindow
		return 0, malformed("/policy/window", "policy.window is from 0s to %v, not %v", Duration(leadership.MaxWindow), *d)
	case *d == 0:
		return leadership.NoWindow, nil
	}
	return time.Duration(*d), nil
}

func rawReport(t leadership.ReportText) jsontext.Value { return rawObject([]byte(t)) }

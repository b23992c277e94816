package authz

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"regent/httpapi/access/authn"
	"regent/httpapi/access/limit"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
)

// MaxAccess is the size limit of an access file in bytes.
const MaxAccess = 1 << 20

// Access is a parsed access file. It is immutable.
type Access struct {
	grants []grant
	limits map[string]limit.Limits // by principal
}

type document struct {
	Grants []grant     `yaml:"grants"`
	Limits []allowance `yaml:"limits"`
}

// allowance sets the limits of each of the principals.
type allowance struct {
	Principals   []string `yaml:"principals"`
	limit.Limits `yaml:",inline"`
}

// grant gives each of the roles over each of the elections to each of the principals.
type grant struct {
	Principals []string                 `yaml:"principals"`
	Roles      []wire.Role              `yaml:"roles"`
	Elections  []leadership.Election    `yaml:"elections"`  // or patterns
	Candidates []leadership.CandidateID `yaml:"candidates"` // or patterns
	// MaxLease is the longest lease that the principals may ask for by this grant; 0 for no limit.
	MaxLease time.Duration `yaml:"maxLeaseDuration"`
}

// anyCaller matches every authenticated caller.
const anyCaller = "*"

// Crowd is the set of callers that can be authenticated, which "*" stands for.
type Crowd string

const (
	Admitted Crowd = "admitted" // callers that another check admits, such as Cloud Run's IAM
	Anyone   Crowd = "anyone"   // every caller that can get a token of the issuer: with Google, every account
)

// ParseAccess parses an access file for a service with that crowd of callers. An error names the
// mistake, the place, and what to do.
func ParseAccess(text []byte, crowd Crowd) (*Access, error) {
	if len(text) > MaxAccess {
		return nil, fmt.Errorf("an access file must not exceed %d bytes, this one has %d", MaxAccess, len(text))
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	var d document
	if err := decoder.Decode(&d); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the access file is empty and would refuse every call; write a list of grants")
		}
		return nil, fmt.Errorf("the access file cannot be read: %w", cmp.Or(explain(text, err), err))
	}
	if err := explain(text, nil); err != nil {
		return nil, fmt.Errorf("the access file cannot be read: %w", err)
	}
	if err := decoder.Decode(&document{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("the access file has more than one YAML document; write all grants into the first")
	}
	if len(d.Grants) == 0 {
		return nil, errors.New("the access file has no grants and would refuse every call")
	}
	for i, g := range d.Grants {
		if err := cmp.Or(g.validate(), g.refuseCrowd(crowd)); err != nil {
			return nil, fmt.Errorf("grant %d of the access file: %w", i+1, err)
		}
	}
	limits, err := gather(d.Limits)
	if err != nil {
		return nil, err
	}
	return &Access{grants: d.Grants, limits: limits}, nil
}

// gather returns the limits of each principal. It refuses a second entry for one.
func gather(all []allowance) (map[string]limit.Limits, error) {
	limits := map[string]limit.Limits{}
	for i, a := range all {
		err := cmp.Or(validatePrincipals(a.Principals), a.Limits.Validate())
		for _, p := range a.Principals {
			if _, twice := limits[p]; twice && err == nil {
				err = fmt.Errorf("principal %q has limits already", p)
			}
			limits[p] = a.Limits
		}
		if err != nil {
			return nil, fmt.Errorf("limits %d of the access file: %w", i+1, err)
		}
	}
	return limits, nil
}

// Limits returns the limits of a principal: its own, by its e-mail or else as "ISSUER|SUBJECT", or
// else those of "*". Zeros mean the default.
func (p *Access) Limits(who authn.Principal) limit.Limits {
	for _, name := range []string{who.String(), who.Pinned()} {
		if own, ok := p.limits[name]; ok {
			return own
		}
	}
	return p.limits[anyCaller]
}

func (g grant) validate() error {
	switch err := validatePrincipals(g.Principals); {
	case err != nil:
		return err
	case len(g.Roles) == 0:
		return fmt.Errorf("roles are missing; they are some of %s", roleNames())
	case len(g.Elections) == 0 && !slices.Equal(g.Roles, []wire.Role{wire.RoleScheduler}):
		return errors.New(`elections are missing: names or "PREFIX*"`)
	}
	for _, r := range g.Roles {
		if !slices.Contains(wire.Roles(), r) {
			return fmt.Errorf("there is no role %q; the roles are %s", r, roleNames())
		}
	}
	if len(g.Candidates) > 0 && !slices.Contains(g.Roles, wire.RoleCandidate) {
		return errors.New("candidates need the role candidate, which is not among the roles")
	}
	if err := g.validateMaxLease(); err != nil {
		return err
	}
	return errors.Join(validateAll(g.Elections, leadership.Election.ValidatePattern), validateAll(g.Candidates, validCandidate))
}

func (g grant) validateMaxLease() error {
	switch d := g.MaxLease; {
	case d == 0:
		return nil
	case !slices.Contains(g.Roles, wire.RoleCandidate):
		return errors.New("maxLeaseDuration needs the role candidate, which is not among the roles")
	case d < leadership.MinLeaseDuration || d > leadership.MaxLeaseDuration || d%time.Millisecond != 0:
		return fmt.Errorf("maxLeaseDuration must be from %v to %v in whole milliseconds, such as 1m, not %v", leadership.MinLeaseDuration, leadership.MaxLeaseDuration, d)
	}
	return nil
}

// refuseCrowd refuses a grant by which any account could change something.
func (g grant) refuseCrowd(crowd Crowd) error {
	if crowd != Anyone || !slices.Contains(g.Principals, anyCaller) {
		return nil
	}
	for _, r := range g.Roles {
		changes := func(row wire.Row) bool { return row.Allows(r) && row.Changes() }
		if slices.ContainsFunc(wire.Verbs(), changes) {
			return fmt.Errorf(`principal "*" may not be a %s here: with oidc it stands for every account that can get a token of the issuer, which for Google is every account there is; `+
				`name the principals, or let Cloud Run's IAM choose the callers (platform)`, r)
		}
	}
	return nil
}

func validatePrincipals(all []string) error {
	if len(all) == 0 {
		return errors.New("principals are missing: an e-mail address or ISSUER|SUBJECT")
	}
	for _, p := range all {
		if p == "" || p != anyCaller && strings.ContainsAny(p, "* \t\n") {
			return fmt.Errorf(`principal %q must be written in full, or "*" for every authenticated caller`, p)
		}
	}
	return nil
}

func validateAll[T ~string](patterns []T, valid func(T) error) error {
	for _, p := range patterns {
		if err := valid(p); err != nil {
			return fmt.Errorf("%q: %w", p, err)
		}
	}
	return nil
}

// validCandidate also accepts "*" alone, and short patterns, which only a ban must not have.
func validCandidate(id leadership.CandidateID) error {
	if id == "*" {
		return nil
	}
	return leadership.CandidateID(strings.TrimSuffix(string(id), "*")).Validate()
}

// allows reports whether a grant lets the principal make the call.
func (p *Access) allows(who authn.Principal, op instance.Op) bool {
	return slices.ContainsFunc(p.grants, func(g grant) bool { return g.allows(who, op) })
}

// permits reports whether a grant lets the principal make the call, as any candidate if the call is
// made as one.
func (p *Access) permits(who authn.Principal, op instance.Op) bool {
	return slices.ContainsFunc(p.grants, func(g grant) bool { return g.permits(who, op) })
}

func (g grant) allows(who authn.Principal, op instance.Op) bool {
	return g.permits(who, op) && (!op.AsCandidate || g.owns(who.String(), op.Candidate))
}

func (g grant) permits(who authn.Principal, op instance.Op) bool {
	return g.isFor(who) && slices.ContainsFunc(g.Roles, op.Allows) && g.over(op)
}

// longest returns the longest lease that the grants of the call allow; 0 for no limit. A lease as
// the election is configured is the operator's choice, and always allowed.
func (p *Access) longest(who authn.Principal, op instance.Op) (most time.Duration) {
	for _, g := range p.grants {
		if !g.allows(who, op) {
			continue
		}
		if g.MaxLease == 0 {
			return 0
		}
		most = max(most, g.MaxLease)
	}
	return most
}

// isFor reports whether the grant names the principal or "*".
func (g grant) isFor(who authn.Principal) bool {
	return g.names(who) || slices.Contains(g.Principals, anyCaller)
}

// names reports whether the grant names the principal: by its e-mail, or by the subject that its
// issuer never gives to another.
func (g grant) names(who authn.Principal) bool {
	return slices.Contains(g.Principals, who.String()) || slices.Contains(g.Principals, who.Pinned())
}

// names reports whether a grant names the principal.
func (p *Access) names(who authn.Principal) bool {
	return slices.ContainsFunc(p.grants, func(g grant) bool { return g.names(who) })
}

// covered returns the names and patterns of elections that the principal's grants for the call
// cover.
func (p *Access) covered(who authn.Principal, op instance.Op) (all []leadership.Election) {
	for _, g := range p.grants {
		if !g.isFor(who) || !slices.ContainsFunc(g.Roles, op.Allows) {
			continue
		}
		all = append(all, g.Elections...)
	}
	return all
}

// over reports whether the grant covers the election of the call. For a list any election will do:
// the reply leaves out elections that the caller may not read.
func (g grant) over(op instance.Op) bool {
	switch {
	case op.Scope == wire.ScopeService:
		return true
	case op.Scope == wire.ScopePrefix:
		op.Election = leadership.Election(op.Prefix + "*")
	case op.Scope == wire.ScopeVisible && op.Election == "":
		return len(g.Elections) > 0
	}
	return slices.ContainsFunc(g.Elections, func(e leadership.Election) bool { return e.Covers(op.Election) })
}

// owns reports whether the principal may use the candidate id.
func (g grant) owns(who string, id leadership.CandidateID) bool {
	if len(g.Candidates) == 0 {
		return isOwn(who, id)
	}
	return slices.ContainsFunc(g.Candidates, func(c leadership.CandidateID) bool { return c.Covers(id) })
}

// isOwn reports whether a candidate id is a principal's own name, or begins with it and a colon.
func isOwn(who string, id leadership.CandidateID) bool {
	return string(id) == who || strings.HasPrefix(string(id), who+":")
}

// mayLead reports whether the grant lets any of its principals make the call as its candidate. For
// "*" and ISSUER|SUBJECT, whose names are not known here, any id may be a principal's own.
func (g grant) mayLead(op instance.Op) bool {
	if !slices.ContainsFunc(g.Roles, op.Allows) || !g.over(op) {
		return false
	}
	return slices.ContainsFunc(g.Principals, func(p string) bool {
		unknown := p == anyCaller || strings.Contains(p, "|")
		return g.owns(p, op.Candidate) || unknown && len(g.Candidates) == 0
	})
}

func roleNames() string {
	var names []string
	for _, r := range wire.Roles() {
		names = append(names, string(r))
	}
	return strings.Join(names, ", ")
}

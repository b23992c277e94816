package authz

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"regent/httpapi/access/authn"
	"regent/httpapi/access/limit"
	"regent/leadership"
)

// MaxPolicy is how many bytes a policy may have.
const MaxPolicy = 1 << 20

// Policy is who may do what. It does not change.
type Policy struct {
	grants []grant
	limits map[string]limit.Limits // by principal
}

// document is a policy as it is written.
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
	Principals []string  `yaml:"principals"`
	Roles      []Role    `yaml:"roles"`
	Elections  []pattern `yaml:"elections"`
	Candidates []pattern `yaml:"candidates"`
}

// pattern is a name, or the beginning of one and a star.
type pattern string

// everybody is a principal that all are who were let in.
const everybody = "*"

// ParsePolicy reads a policy. The error says where it is wrong, and what to do.
func ParsePolicy(text []byte) (*Policy, error) {
	if len(text) > MaxPolicy {
		return nil, fmt.Errorf("a policy has at most %d bytes, this one has %d", MaxPolicy, len(text))
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	var d document
	if err := decoder.Decode(&d); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the policy is empty, and would let nobody in; write a list of grants")
		}
		return nil, fmt.Errorf("the policy cannot be read: %w", err)
	}
	if err := decoder.Decode(&document{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("the policy has more than one document; write all grants into the first")
	}
	if len(d.Grants) == 0 {
		return nil, errors.New("the policy has no grants, and would let nobody in")
	}
	for i, g := range d.Grants {
		if err := g.validate(); err != nil {
			return nil, fmt.Errorf("grant %d of the policy: %w", i+1, err)
		}
	}
	limits, err := gather(d.Limits)
	if err != nil {
		return nil, err
	}
	return &Policy{grants: d.Grants, limits: limits}, nil
}

// gather finds the limits of each principal, and that no two are said of one.
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
			return nil, fmt.Errorf("limits %d of the policy: %w", i+1, err)
		}
	}
	return limits, nil
}

// Limits are those of a principal, spelt as authn.Principal.String spells it: its own, or those of "*". What neither says is the default.
func (p *Policy) Limits(principal string) limit.Limits {
	if own, ok := p.limits[principal]; ok {
		return own
	}
	return p.limits[everybody]
}

func (g grant) validate() error {
	switch err := validatePrincipals(g.Principals); {
	case err != nil:
		return err
	case len(g.Roles) == 0:
		return fmt.Errorf("roles are missing: some of %s", spelt())
	case len(g.Elections) == 0 && !slices.Equal(g.Roles, []Role{Scheduler}):
		return errors.New(`elections are missing: names, or "PREFIX*"`)
	}
	for _, r := range g.Roles {
		if _, ok := calls[r]; !ok {
			return fmt.Errorf("there is no role %q; the roles are %s", r, spelt())
		}
	}
	if len(g.Candidates) > 0 && !slices.Contains(g.Roles, Candidate) {
		return errors.New("candidates are for the role candidate, which is not among the roles")
	}
	return errors.Join(validateAll(g.Elections, validElection), validateAll(g.Candidates, validCandidate))
}

func validatePrincipals(all []string) error {
	if len(all) == 0 {
		return errors.New("principals are missing: an e-mail address, or ISSUER|SUBJECT")
	}
	for _, p := range all {
		if p == "" || p != everybody && strings.ContainsAny(p, "* \t\n") {
			return fmt.Errorf(`principal %q is spelt in full, or "*" for everybody who was let in`, p)
		}
	}
	return nil
}

func validateAll(patterns []pattern, valid func(name string, open bool) error) error {
	for _, p := range patterns {
		name, open := strings.CutSuffix(string(p), "*")
		if open && name == "" {
			continue
		}
		if err := valid(name, open); err != nil {
			return fmt.Errorf("%q: %w", p, err)
		}
	}
	return nil
}

func validElection(name string, open bool) error {
	if !open {
		return leadership.Election(name).Validate()
	}
	err := leadership.ValidatePrefix(name)
	var refusal *leadership.Error
	if errors.As(err, &refusal) { // of which the code says nothing to whoever writes a policy
		return errors.New(refusal.Detail)
	}
	return err
}

func validCandidate(name string, _ bool) error { return leadership.CandidateID(name).Validate() }

// matches says whether the name is the pattern's.
func (p pattern) matches(name string) bool {
	if prefix, open := strings.CutSuffix(string(p), "*"); open {
		return strings.HasPrefix(name, prefix)
	}
	return name == string(p)
}

// covers says whether every name that begins so is the pattern's.
func (p pattern) covers(prefix string) bool {
	own, open := strings.CutSuffix(string(p), "*")
	return open && strings.HasPrefix(prefix, own)
}

// allows says whether some grant gives the principal a right to the call about an election that fits.
func (p *Policy) allows(who authn.Principal, call Call, fits func(grant) bool) bool {
	return slices.ContainsFunc(p.grants, func(g grant) bool {
		return g.isFor(who) && slices.ContainsFunc(g.Roles, func(r Role) bool { return slices.Contains(calls[r], call) }) && fits(g)
	})
}

func (g grant) isFor(who authn.Principal) bool {
	return slices.Contains(g.Principals, who.String()) || slices.Contains(g.Principals, everybody)
}

// over says whether the grant is over the election.
func (g grant) over(e leadership.Election) bool {
	return slices.ContainsFunc(g.Elections, func(p pattern) bool { return p.matches(string(e)) })
}

// overAll says whether the grant is over all elections whose names begin so.
func (g grant) overAll(prefix string) bool {
	return slices.ContainsFunc(g.Elections, func(p pattern) bool { return p.covers(prefix) })
}

// owns says whether the principal may call itself so.
func (g grant) owns(who authn.Principal, id leadership.CandidateID) bool {
	if len(g.Candidates) == 0 {
		own := who.String()
		return string(id) == own || strings.HasPrefix(string(id), own+":")
	}
	return slices.ContainsFunc(g.Candidates, func(p pattern) bool { return p.matches(string(id)) })
}

package rule

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"regent/leadership"
	"regent/leadership/internal/form"
)

// Version counts the programs whose records differ in meaning. A record says in Needs which version
// a program must have to decide on it.
type Version int

// ProgramVersion is the version of this program. It rises with a member of policy or standing that
// an older program must not ignore, and that member's row then says so.
const ProgramVersion Version = 1

// MaxCarriedBytes limits a record's policy and standing together, encoded.
const MaxCarriedBytes = 48 << 10

// Codec encodes and decodes the parts of a record that stores carry without looking into them. The
// zero Codec is this program's.
//
// A program keeps members that it does not know and writes them back unchanged, so a fleet of two
// versions works. If an older program must not ignore a member, the member's row has the version
// that it needs; a record that uses it says so in Needs, and an older program then refuses that
// election (RecordTooNew) and writes nothing. A new member needs no change of a store.
type Codec struct {
	// Next makes the codec that of a program of the next version, for tests of an upgrade. That
	// program keeps the description in "title", a member of policy that this program does not know
	// and must not ignore.
	Next bool
}

// Carried is the encoded policy and standing of a record, as a store keeps them.
type Carried struct {
	Policy   string  // a JSON object; "" if it has no members
	Standing string  // a JSON object; "" if it has no members
	Needs    Version // Record.Needs, for the store's conditions
}

// member is a row of the codec: one member of policy or standing.
type member struct {
	name  string
	needs Version // that a program must have to decide on a record with the member; 0: any
	field field
}

// field encodes and decodes a Go field as a member's value.
type field interface {
	encode() json.RawMessage // nil for the zero value, which is left out
	decode(json.RawMessage) error
}

// Program returns the version of the codec's program.
func (c Codec) Program() Version {
	if c.Next {
		return ProgramVersion + 1
	}
	return ProgramVersion
}

func (c Codec) policyMembers(p *Policy) []member {
	members := policyMembers(p)
	if c.Next {
		i := slices.IndexFunc(members, func(m member) bool { return m.name == "description" })
		members[i].name, members[i].needs = "title", c.Program()
	}
	return members
}

// Encode returns r's policy and standing as a store keeps them, and sets r.Needs. The error is
// InvalidArgument if together they are too large.
func (c Codec) Encode(r *Record) (Carried, error) {
	var policy, standing string
	var policyNeeds, standingNeeds Version
	var err error
	if r.Policy != (Policy{}) {
		p := r.Policy // so that no record goes to the heap
		if policy, policyNeeds, err = encodeMembers(c.policyMembers(&p), p.Unknown); err != nil {
			return Carried{}, Corrupt(r.Election, fmt.Errorf("policy: %w", err))
		}
	}
	if r.Standing != (Standing{}) {
		s := r.Standing
		if standing, standingNeeds, err = encodeMembers(standingMembers(&s), s.Unknown); err != nil {
			return Carried{}, Corrupt(r.Election, fmt.Errorf("standing: %w", err))
		}
	}
	if n := len(policy) + len(standing); n > MaxCarriedBytes {
		return Carried{}, leadership.Invalid("policy", fmt.Errorf(
			"policy and standing of election %q have at most %d bytes together, and these have %d", r.Election, MaxCarriedBytes, n))
	}
	needs := max(1, policyNeeds, standingNeeds)
	if r.Policy.Unknown != "" || r.Standing.Unknown != "" {
		needs = max(needs, r.Needs) // an unknown member may need it
	}
	r.Needs = needs
	return Carried{Policy: policy, Standing: standing, Needs: needs}, nil
}

// Decode sets r's policy, standing and needs from what a store has kept. It accepts only text that
// Encode, perhaps of a newer program, can have written. The error is RecordTooNew or RecordCorrupt.
func (c Codec) Decode(r *Record, from Carried) error {
	switch {
	case from.Needs < 1:
		return Corrupt(r.Election, fmt.Errorf("it needs version %d of the program, and they count from 1", from.Needs))
	case from.Needs > c.Program():
		return &leadership.Error{Code: leadership.RecordTooNew, Detail: fmt.Sprintf(
			"election %q uses a feature that needs version %d of the program, and this instance runs version %d; nothing was done: try again to reach a newer instance, and upgrade this one",
			r.Election, from.Needs, c.Program())}
	case len(from.Policy)+len(from.Standing) > MaxCarriedBytes:
		return Corrupt(r.Election, fmt.Errorf("policy and standing have %d bytes together", len(from.Policy)+len(from.Standing)))
	}
	r.Needs, r.Policy, r.Standing = from.Needs, Policy{}, Standing{}
	if from.Policy == "" && from.Standing == "" {
		return nil
	}
	var p Policy // so that no record goes to the heap
	var s Standing
	var err error
	if p.Unknown, err = decodeMembers(from.Policy, c.policyMembers(&p)); err != nil {
		return Corrupt(r.Election, fmt.Errorf("policy: %w", err))
	}
	if s.Unknown, err = decodeMembers(from.Standing, standingMembers(&s)); err != nil {
		return Corrupt(r.Election, fmt.Errorf("standing: %w", err))
	}
	r.Policy, r.Standing = p, s
	return nil
}

// encodeMembers returns the object of the known and the unknown members, and the version that the
// known ones need.
func encodeMembers(known []member, unknown string) (text string, needs Version, err error) {
	values := make([]named, 0, 8)
	for _, m := range known {
		if value := m.field.encode(); value != nil {
			values, needs = append(values, named{m.name, value}), max(needs, m.needs)
		}
	}
	if unknown == "" {
		return writeNamed(values), needs, nil
	}
	object, err := form.Object(unknown)
	if err != nil {
		return "", 0, fmt.Errorf("unknown members: %w", err)
	}
	for _, m := range known {
		if _, twice := object[m.name]; twice {
			return "", 0, fmt.Errorf("member %q is known and unknown", m.name)
		}
	}
	for _, v := range values {
		object[v.name] = v.value
	}
	text, err = form.WriteObject(object)
	return text, needs, err
}

// named is a member with its encoded value.
type named struct {
	name  string
	value json.RawMessage
}

// writeNamed is form.WriteObject without a map, because each grant writes the known members.
func writeNamed(values []named) string {
	if len(values) == 0 {
		return ""
	}
	slices.SortFunc(values, func(a, b named) int { return strings.Compare(a.name, b.name) })
	var b strings.Builder
	for i, v := range values {
		b.WriteByte("{,"[min(i, 1)])
		b.WriteString(`"` + v.name + `":`)
		b.Write(v.value)
	}
	b.WriteByte('}')
	return b.String()
}

// decodeMembers sets the known members, and returns the others.
func decodeMembers(text string, known []member) (unknown string, err error) {
	object, err := form.Object(text)
	if err != nil {
		return "", err
	}
	for _, m := range known {
		value, ok := object[m.name]
		if !ok {
			continue
		}
		if err := m.field.decode(value); err != nil {
			return "", fmt.Errorf("member %q: %w", m.name, err)
		}
		if !bytes.Equal(m.field.encode(), value) {
			return "", fmt.Errorf("member %q is not in the one form that is written", m.name)
		}
		delete(object, m.name)
	}
	return form.WriteObject(object)
}

// validateObject accepts a canonical JSON object of at most limit bytes, or nothing.
func validateObject(text string, limit int) error {
	object, err := form.Object(text)
	if err != nil {
		return err
	}
	canonical, err := form.WriteObject(object)
	switch {
	case err != nil:
		return err
	case canonical != text:
		return errors.New("it is not canonical JSON")
	case len(text) > limit:
		return fmt.Errorf("it has %d bytes, and at most %d are allowed", len(text), limit)
	}
	return nil
}

// milliseconds is a duration as a whole number of milliseconds, not below 0.
type milliseconds time.Duration

func (m *milliseconds) encode() json.RawMessage {
	if *m == 0 {
		return nil
	}
	return fmt.Appendf(nil, "%d", time.Duration(*m).Milliseconds())
}

func (m *milliseconds) decode(value json.RawMessage) error {
	return decodeMilliseconds(value, max(leadership.MaxLeaseDuration, leadership.MaxLockDelay), (*time.Duration)(m))
}

// longMilliseconds is milliseconds with the limit of RetireAfter.
type longMilliseconds time.Duration

func (m *longMilliseconds) encode() json.RawMessage { return (*milliseconds)(m).encode() }

func (m *longMilliseconds) decode(value json.RawMessage) error {
	return decodeMilliseconds(value, leadership.MaxRetireAfter, (*time.Duration)(m))
}

func decodeMilliseconds(value json.RawMessage, most time.Duration, d *time.Duration) error {
	var ms int64
	if err := json.Unmarshal(value, &ms); err != nil || slices.Equal(value, []byte("null")) {
		return fmt.Errorf("%s is not a whole number of milliseconds", form.Shown(string(value)))
	}
	if ms < 0 || ms > most.Milliseconds() {
		return fmt.Errorf("%d ms is out of range", ms)
	}
	*d = time.Duration(ms) * time.Millisecond
	return nil
}

// seconds is a time in seconds since 1970. Each renewal reads and writes it, so it does without
// reflection.
type seconds int64

func (s *seconds) encode() json.RawMessage {
	if *s == 0 {
		return nil
	}
	return strconv.AppendInt(nil, int64(*s), 10)
}

func (s *seconds) decode(value json.RawMessage) error {
	n, err := strconv.ParseInt(string(value), 10, 64)
	*s = seconds(n)
	return err
}

// text is a string of at most maxTextBytes, for a person.
type text string

func (t *text) encode() json.RawMessage {
	if *t == "" {
		return nil
	}
	value, _ := form.JSON(string(*t)) // a string always has a JSON form
	return value
}

func (t *text) decode(value json.RawMessage) error {
	var s string
	if err := json.Unmarshal(value, &s); err != nil || slices.Equal(value, []byte("null")) {
		return fmt.Errorf("%s is not a string", form.Shown(string(value)))
	}
	if err := form.Text(s); err != nil {
		return err
	}
	*t = text(s)
	return nil
}

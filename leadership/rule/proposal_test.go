package rule

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/internal/form"
)

// office is the proposals of an election, with the store's time.
type office struct {
	*testing.T
	Log
	now time.Time
}

func newOffice(t *testing.T) *office {
	return &office{t, Log{ID: LogID{"jobs", LogProposals}}, aMoment}
}

// amend does what a store does with the change of a rule, which takes a millisecond.
func (o *office) amend(rule func(Log) (LogChange, error)) error {
	ch, err := rule(o.Log)
	o.now = o.now.Add(time.Millisecond)
	if err == nil && ch.Text != "" {
		o.Text, o.Body, o.WrittenAt = ch.Text, ch.Body, o.now
	}
	return err
}

func asks(id leadership.ProposalID, by leadership.CandidateID) leadership.ProposeRequest {
	return leadership.ProposeRequest{Election: "jobs", CandidateID: by, ID: id, Kind: "scale", Data: json.RawMessage(`{"to":3}`), TTL: time.Minute}
}

func (o *office) propose(r leadership.ProposeRequest, principal string) error {
	return o.amend(func(l Log) (LogChange, error) { return Propose(l, r, principal, o.now) })
}

func (o *office) decide(c Renewal, leads bool, id leadership.ProposalID, v leadership.ProposalVerdict, note string) error {
	d := leadership.DecideRequest{ID: id, Verdict: v, Note: note}
	return o.amend(func(l Log) (LogChange, error) { return Decide(l, c, d, leads, o.now) })
}

func (o *office) all() leadership.Proposals {
	o.Helper()
	all, err := o.Proposals(o.now)
	require.NoError(o, err)
	return all
}

// fill adds ids of past proposals until there are n proposals.
func (o *office) fill(n int) {
	o.Helper()
	all := proposals{Past: make(map[string]int64)}
	require.NoError(o, json.Unmarshal([]byte(o.Body), &all))
	for i := len(all.Open) + len(all.Decided) + len(all.Past); i < n; i++ {
		all.Past[form.Digest(fmt.Sprint("past", i))] = o.now.Add(time.Minute).UnixMilli()
	}
	body, err := json.Marshal(all)
	require.NoError(o, err)
	o.Body = string(body)
}

// must expects an error with the code; "" for none.
func (o *office) must(what string, err error, want leadership.Code) {
	o.Helper()
	if want == "" && err != nil || want != "" && !errors.Is(err, want) {
		o.Errorf("%s: %v, want %q", what, err, want)
	}
}

func TestAProposalIsTheSameHoweverOftenItIsMade(t *testing.T) {
	o := newOffice(t)
	o.must("propose", o.propose(asks("p", "ann"), "user:a"), "")
	made := o.all()
	o.must("again", o.propose(asks("p", "ann"), "user:a"), "")
	for what, change := range map[string]func(*leadership.ProposeRequest){
		"another proposer": func(r *leadership.ProposeRequest) { r.CandidateID = "bob" },
		"another kind":     func(r *leadership.ProposeRequest) { r.Kind = "stop" },
		"other data":       func(r *leadership.ProposeRequest) { r.Data = json.RawMessage(`{"to":4}`) },
	} {
		r := asks("p", "ann")
		change(&r)
		o.must(what, o.propose(r, "user:a"), leadership.InvalidArgument)
	}
	if all := o.all(); len(all.Open) != 1 || all.Changes != made.Changes || !all.Open[0].At.Equal(aMoment.Add(time.Millisecond)) || all.Open[0].Principal != "user:a" {
		t.Errorf("there is %+v", all)
	}
	o.must("decide", o.decide(leaderOf(5), true, "p", leadership.ProposalAccepted, "go"), "")
	o.must("proposed again", o.propose(asks("p", "ann"), "user:a"), "")
	if all := o.all(); len(all.Open) != 0 || len(all.Decided) != 1 {
		t.Errorf("a copy that came after the decision opened it: %+v", all)
	}
}

func TestADecisionIsMadeOnceByTheLeader(t *testing.T) {
	o := newOffice(t)
	o.must("propose", o.propose(asks("p", "ann"), ""), "")
	o.must("propose", o.propose(asks("q", "ann"), ""), "")
	const yes, no = leadership.ProposalAccepted, leadership.ProposalRejected
	assert.ErrorIs(t, o.decide(leaderOf(5), false, "p", yes, ""), ErrUnopened, "one that does not lead")
	o.must("an unknown one", o.decide(leaderOf(5), true, "r", yes, ""), leadership.NotFound)
	o.must("decide", o.decide(leaderOf(5), true, "p", yes, "go"), "")
	at := o.now
	o.must("again", o.decide(leaderOf(5), true, "p", yes, "go"), "")
	o.must("another verdict", o.decide(leaderOf(5), true, "p", no, "go"), leadership.InvalidArgument)
	o.must("another note", o.decide(leaderOf(5), true, "p", yes, "stop"), leadership.InvalidArgument)
	o.must("another verdict of the next leader", o.decide(leaderOf(6), true, "p", no, ""), leadership.InvalidArgument)
	o.must("the next leader", o.decide(leaderOf(6), true, "q", no, ""), "")
	o.must("a late one of the leader before", o.decide(leaderOf(5), true, "q", yes, ""), leadership.TokenStale)
	other := leaderOf(6)
	other.KeyHash = leadership.Key{9}.Hash()
	o.must("another key", o.decide(other, true, "q", no, ""), leadership.LeaseLost)
	all := o.all()
	want := leadership.Decision{Verdict: yes, Note: "go", Token: 5, LeaderID: "leader-5", At: at}
	if len(all.Open) > 0 || len(all.Decided) != 2 || *all.Decided[0].Decision != want || all.Decided[1].Decision.Token != 6 {
		t.Errorf("there is %+v, want %+v first", all, want)
	}
}

func TestAProposalIsKeptForItsTTLAndADecisionForAsLongAgain(t *testing.T) {
	o := newOffice(t)
	o.must("propose", o.propose(asks("p", "ann"), ""), "")
	end := o.now.Add(time.Minute)
	for _, c := range []struct {
		now  time.Time
		open int
	}{{time.Time{}, 1}, {end.Add(-time.Nanosecond), 1}, {end, 0}} {
		if all, err := o.Proposals(c.now); err != nil || len(all.Open) != c.open {
			t.Errorf("at %v there is %+v, %v; want %d", c.now, all, err, c.open)
		}
	}
	o.now = end.Add(-time.Second)
	o.must("decide", o.decide(leaderOf(5), true, "p", leadership.ProposalRejected, ""), "")
	o.now = o.now.Add(59 * time.Second)
	if all := o.all(); len(all.Decided) != 1 || !all.Decided[0].Until.Equal(o.WrittenAt.Add(time.Minute)) {
		t.Errorf("the decision is gone: %+v", all)
	}
	o.now = o.now.Add(time.Second)
	o.must("decided again after its time", o.decide(leaderOf(5), true, "p", leadership.ProposalAccepted, ""), leadership.NotFound)
	o.must("another of the same id", o.propose(asks("p", "bob"), ""), "")
	if all := o.all(); len(all.Decided) > 0 || len(all.Open) != 1 || strings.Contains(o.Body, "ann") {
		t.Errorf("there is %+v in %s", all, o.Body)
	}
}

func TestProposalsAndDecisionsAreBounded(t *testing.T) {
	o := newOffice(t)
	n := 0
	ask := func(by leadership.CandidateID, principal string) error {
		n++
		return o.propose(asks(leadership.ProposalID(fmt.Sprint("p", n)), by), principal)
	}
	for range leadership.MaxOwnProposals {
		o.must("propose", ask("ann", "user:a"), "")
	}
	o.must("one candidate", ask("ann", "user:b"), leadership.LimitExceeded)
	o.must("one principal", ask("bob", "user:a"), leadership.LimitExceeded)
	for i := len(o.all().Open); i < leadership.MaxOpenProposals; i++ {
		o.must("propose", ask(leadership.CandidateID(fmt.Sprint("m", i)), ""), "")
	}
	o.must("one more", ask("zoe", ""), leadership.LimitExceeded)
	o.now = o.now.Add(30 * time.Second)
	for round := range 2 {
		for _, p := range o.all().Open {
			o.must("decide", o.decide(leaderOf(5), true, p.ID, leadership.ProposalAccepted, ""), "")
		}
		if all := o.all(); len(all.Decided) > leadership.MaxDecidedProposals {
			t.Errorf("%d decisions are kept", len(all.Decided))
		}
		o.must("proposed", ask(leadership.CandidateID(fmt.Sprint("more", round)), ""), "")
	}
	o.must("a copy of one that many have followed", o.propose(asks("p1", "ann"), "user:a"), leadership.NotFound)
	o.fill(leadership.MaxProposals - 1)
	o.must("the last that may be known", ask("ann", ""), "")
	o.must("one more", ask("ann", ""), leadership.LimitExceeded)
	o.now = o.now.Add(time.Hour)
	o.must("after all of them", ask("ann", "user:a"), "")
	if all := o.all(); len(all.Open) != 1 || len(all.Decided) != 0 || strings.Contains(o.Body, "past") {
		t.Errorf("there is %+v", all)
	}
}

// The longest of everything fits into a head of a store.
func TestTheMostProposalsFitIntoALog(t *testing.T) {
	o := newOffice(t)
	long := func(n, i int) string { return fmt.Sprintf("%0*d", n, i) }
	for i := range 2 * leadership.MaxOpenProposals {
		r := asks(leadership.ProposalID(long(leadership.MaxProposalLength, i)), leadership.CandidateID(long(leadership.MaxCandidateLength, i)))
		r.Kind, r.Data = strings.Repeat(`"`, leadership.MaxProposalKindBytes), json.RawMessage(`"`+strings.Repeat("x", leadership.MaxProposalBytes-2)+`"`)
		o.must("propose", o.propose(r, strings.Repeat(`"`, leadership.MaxActorBytes-4)+long(4, i)), "")
		if i < leadership.MaxDecidedProposals {
			c := leaderOf(leadership.MaxToken)
			c.CandidateID = leadership.CandidateID(long(leadership.MaxCandidateLength, 0))
			o.must("decide", o.decide(c, true, r.ID, leadership.ProposalAccepted, strings.Repeat(`"`, 256)), "")
		}
	}
	o.fill(leadership.MaxProposals)
	if all := o.all(); len(all.Open)+len(all.Decided) != 2*leadership.MaxOpenProposals || len(o.Text)+len(o.Body) > MaxLogBytes {
		t.Errorf("%d and %d proposals have %d bytes", len(all.Open), len(all.Decided), len(o.Text)+len(o.Body))
	}
}

func TestProposalsAreRaisedAndCopiedWithTheirTimes(t *testing.T) {
	o := newOffice(t)
	if ch, err := RaisedLog(o.Log, 1000, true); err != nil || ch.Text != "" {
		t.Errorf("nothing is raised to %+v, %v", ch, err)
	}
	o.must("propose", o.propose(asks("p", "ann"), ""), "")
	o.must("propose", o.propose(asks("q", "ann"), ""), "")
	o.must("decide", o.decide(leaderOf(5), true, "p", leadership.ProposalAccepted, ""), "")
	before := o.all()
	o.now = o.now.Add(time.Second)
	raise := func(l Log) (LogChange, error) { return RaisedLog(l, 1000, true) }
	o.must("raise", o.amend(raise), "")
	o.must("one of before", o.decide(leaderOf(1000), true, "q", leadership.ProposalAccepted, ""), leadership.LeaseLost)
	if ch, err := raise(o.Log); err != nil || ch.Text != "" {
		t.Errorf("raised again to %+v, %v", ch, err)
	}
	there := newOffice(t)
	there.now = o.now.Add(10 * time.Second)
	c := LogCopy{Log: o.Log}
	copies := func(l Log) (LogChange, error) { return CopyLog(l, c) }
	there.must("copy", there.amend(copies), "")
	if after := there.all(); fmt.Sprint(after.Open[0].At, after.Decided[0].Decision.At, *after.Decided[0].Decision) !=
		fmt.Sprint(before.Open[0].At, before.Decided[0].Decision.At, *before.Decided[0].Decision) {
		t.Errorf("copied: %+v, want %+v", after, before)
	}
	there.must("there", there.propose(asks("r", "bob"), ""), "")
	there.must("copied again", there.amend(copies), "")
	if all := there.all(); all.Find("r") == nil {
		t.Errorf("a copy has replaced a log in use: %+v", all)
	}
}

func TestProposalsThatCannotBeReadAreSaidToBeCorrupt(t *testing.T) {
	for _, l := range []Log{{Text: `{"unknown":1}`}, {Text: `{}`, Body: `[]`}, {Text: `{}`, Body: `{"open":[{"id":1}]}`}} {
		l.ID = LogID{"jobs", LogProposals}
		_, err := l.Proposals(aMoment)
		assert.ErrorIs(t, err, leadership.RecordCorrupt, "%+v", l)
	}
}

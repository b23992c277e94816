package rule

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
)

// kept is a log, and what was added to it.
type kept struct {
	Log
	added []Segment
}

// amend does what a store does with the change of a rule.
func (k *kept) amend(rule func(Log) (LogChange, error)) (LogChange, error) {
	ch, err := rule(k.Log)
	if err == nil && ch.Text != "" {
		k.Text, k.Body, k.WrittenAt = ch.Text, ch.Body, aMoment
		k.added = append(k.added, ch.Add...)
	}
	return ch, err
}

func newLog(kind LogKind) *kept { return &kept{Log: Log{ID: LogID{"jobs", kind}}} }

func leaderOf(token leadership.Token) Renewal {
	return Renewal{Election: "jobs", CandidateID: leadership.CandidateID(fmt.Sprintf("leader-%d", token)), KeyHash: leadership.Key{byte(token)}.Hash(), Token: token}
}

func opens(c Renewal) func(Log) (LogChange, error) {
	return func(l Log) (LogChange, error) { return OpenJournal(l, c) }
}

func appends(c Renewal, after leadership.Index, data ...string) func(Log) (LogChange, error) {
	var all []leadership.Entry
	for _, d := range data {
		all = append(all, leadership.Entry{Token: c.Token, Type: "put", Data: json.RawMessage(d)})
	}
	return func(l Log) (LogChange, error) { return AppendEntries(l, c, after, all) }
}

func snaps(c Renewal, upTo leadership.Index, data string) func(Log) (LogChange, error) {
	return func(l Log) (LogChange, error) { return SnapJournal(l, c, upTo, data) }
}

// puts puts the first checkpoint of a leader.
func puts(c Renewal, data string) func(Log) (LogChange, error) { return putsNext(c, 1, data) }

func putsNext(c Renewal, sequence int64, data string) func(Log) (LogChange, error) {
	return func(l Log) (LogChange, error) {
		return PutCheckpoint(l, c, leadership.Checkpoint{Sequence: sequence, Task: "t", Data: json.RawMessage(data)})
	}
}

func inherits(c Renewal) func(Log) (LogChange, error) {
	return func(l Log) (LogChange, error) { return OpenCheckpoint(l, c) }
}

func TestOnlyTheLeaderThatOpenedALogLastWritesToIt(t *testing.T) {
	otherKey := leaderOf(6)
	otherKey.KeyHash = leadership.Key{9}.Hash()
	otherName := leaderOf(6)
	otherName.CandidateID = "another"
	for _, kind := range []LogKind{LogJournal, LogCheckpoint, LogEffects} {
		opens, writes := opens, func(c Renewal) func(Log) (LogChange, error) { return appends(c, 1, `1`) }
		switch kind {
		case LogCheckpoint:
			opens, writes = inherits, func(c Renewal) func(Log) (LogChange, error) { return puts(c, `1`) }
		case LogEffects:
			opens, writes = opensEffects, func(c Renewal) func(Log) (LogChange, error) { return begins(c, string(c.CandidateID)) }
		}
		for name, c := range map[string]struct {
			rule func(Log) (LogChange, error)
			want error
		}{
			"a late write of the leader before":        {writes(leaderOf(5)), leadership.TokenStale},
			"a late write of one long before":          {writes(leaderOf(1)), leadership.TokenStale},
			"the leader before opens":                  {opens(leaderOf(5)), leadership.TokenStale},
			"a write with another key":                 {writes(otherKey), leadership.LeaseLost},
			"another key opens":                        {opens(otherKey), leadership.LeaseLost},
			"a write under another name":               {writes(otherName), leadership.LeaseLost},
			"another name opens":                       {opens(otherName), leadership.LeaseLost},
			"a write of a later leader, not yet known": {writes(leaderOf(7)), ErrUnopened},
			"its own write":                            {writes(leaderOf(6)), nil},
		} {
			log := newLog(kind)
			first := writes(leaderOf(5))
			if kind == LogJournal {
				first = appends(leaderOf(5), 0, `0`)
			}
			for _, rule := range []func(Log) (LogChange, error){opens(leaderOf(5)), first, opens(leaderOf(6))} {
				_, err := log.amend(rule)
				require.NoError(t, err)
			}
			before := *log
			_, err := log.amend(c.rule)
			assert.ErrorIs(t, err, c.want, "%s, %s", kind, name)
			if c.want != nil && log.Log != before.Log {
				t.Errorf("%s, %s: it was refused, and the log is %+v", kind, name, log.Log)
			}
		}
		log := newLog(kind)
		_, err := log.amend(writes(leaderOf(5)))
		assert.ErrorIs(t, err, ErrUnopened, "%s: never opened", kind)
		log.amend(opens(leaderOf(6)))
		if ch, err := log.amend(opens(leaderOf(6))); err != nil || ch.Text != "" {
			t.Errorf("%s: opened again it writes %+v, %v", kind, ch, err)
		}
	}
}

func TestAnAppendIsGuardedByItsIndexAndCountsOnceHoweverOftenItIsSent(t *testing.T) {
	log, ann := newLog(LogJournal), leaderOf(5)
	for _, rule := range []func(Log) (LogChange, error){opens(ann), appends(ann, 0, `1`, `2`), appends(ann, 2, `3`)} {
		_, err := log.amend(rule)
		require.NoError(t, err)
	}
	if n := len(log.added); n != 2 || log.added[0].First != 1 || log.added[0].Last != 2 || log.added[1].First != 3 || log.added[1].Last != 3 {
		t.Fatalf("added %+v", log.added)
	}
	all, err := log.added[0].Entries()
	if err != nil || len(all) != 2 || all[1].Index != 2 || all[1].Token != 5 || all[1].Type != "put" || string(all[1].Data) != `2` {
		t.Errorf("read back as %+v, %v", all, err)
	}
	before := log.Log
	if ch, err := log.amend(appends(ann, 2, `3`)); err != nil || ch.Text != "" || len(ch.Add) > 0 {
		t.Errorf("the last append again writes %+v, %v", ch, err)
	}
	for what, rule := range map[string]func(Log) (LogChange, error){
		"the append before, again":         appends(ann, 0, `1`, `2`),
		"another entry at the same place":  appends(ann, 2, `4`),
		"one more entry at the same place": appends(ann, 2, `3`, `4`),
		"beyond the end":                   appends(ann, 4, `5`),
	} {
		_, err := log.amend(rule)
		var e *leadership.Error
		if !errors.As(err, &e) || e.Code != leadership.IndexMismatch || e.Index != 3 || log.Log != before {
			t.Errorf("%s: %v; the log is %+v", what, err, log.Log)
		}
	}
	log.amend(snaps(ann, 3, `{}`))
	if ch, err := log.amend(appends(ann, 2, `3`)); err != nil || ch.Text != "" {
		t.Errorf("the last append again, after a snapshot: %+v, %v", ch, err)
	}
	bob := leaderOf(6)
	log.amend(opens(bob))
	_, err = log.amend(appends(ann, 2, `3`))
	assert.ErrorIs(t, err, leadership.TokenStale, "the last append again, after the next leader has opened")
	_, err = log.amend(appends(bob, 2, `3`))
	assert.ErrorIs(t, err, leadership.IndexMismatch, "the same entries by another leader")
}

// inEpoch is the leader in a new epoch: the same candidate and key, under a later token.
func inEpoch(c Renewal, token leadership.Token) Renewal {
	c.Token = token
	return c
}

func TestAnAppendWhoseReplyWasLostIsKnownInANewEpoch(t *testing.T) {
	log, ann := newLog(LogJournal), leaderOf(5)
	log.amend(opens(ann))
	log.amend(appends(ann, 0, `1`))
	ann = inEpoch(ann, 6)
	log.amend(opens(ann))
	if ch, err := log.amend(appends(ann, 0, `1`)); err != nil || ch.Text != "" || len(ch.Add) > 0 {
		t.Errorf("the append again, in a new epoch, writes %+v, %v", ch, err)
	}
	bob := leaderOf(7)
	log.amend(opens(bob))
	log.amend(opens(inEpoch(ann, 8)))
	_, err := log.amend(appends(inEpoch(ann, 8), 0, `1`))
	assert.ErrorIs(t, err, leadership.IndexMismatch, "the append again, after another leader has opened the journal")
}

func TestASnapshotStandsForEntriesThatThereAre(t *testing.T) {
	log, ann := newLog(LogJournal), leaderOf(5)
	log.amend(opens(ann))
	log.amend(appends(ann, 0, `1`, `2`, `3`))
	_, err := log.amend(snaps(ann, 4, `{}`))
	var e *leadership.Error
	if !errors.As(err, &e) || e.Code != leadership.IndexMismatch || e.Index != 3 {
		t.Errorf("beyond the index: %v", err)
	}
	for _, c := range []struct {
		upTo  leadership.Index
		wrote bool
		want  leadership.Index
	}{{2, true, 2}, {2, false, 2}, {1, false, 2}, {3, true, 3}} {
		ch, err := log.amend(snaps(ann, c.upTo, `{}`))
		h, herr := log.Journal()
		if err != nil || herr != nil || (ch.Text != "") != c.wrote || h.Snapshot != c.want || h.Index != 3 {
			t.Errorf("up to %d: wrote %+v, %v; the head is %+v", c.upTo, ch, err, h)
		}
		if c.wrote && (len(ch.Add) != 1 || ch.Add[0].First != 0 || ch.Add[0].Last != c.upTo) {
			t.Errorf("up to %d: added %+v", c.upTo, ch.Add)
		}
	}
}

func TestAJournalHasRoomForSoManyBytesUntilASnapshotStandsForThem(t *testing.T) {
	log, ann := newLog(LogJournal), leaderOf(5)
	log.amend(opens(ann))
	half := `"` + strings.Repeat("x", leadership.MaxAppendBytes-2) + `"`
	last := leadership.Index(0)
	add := func() error {
		_, err := log.amend(appends(ann, last, half))
		if err == nil {
			last++
		}
		return err
	}
	fill := func() {
		t.Helper()
		for last < 1000 {
			if err := add(); errors.Is(err, leadership.LimitExceeded) {
				return
			} else if err != nil {
				t.Fatal(err)
			}
		}
		t.Fatal("there is no end of the room")
	}
	fill()
	if last != leadership.MaxJournalBytes/leadership.MaxAppendBytes-1 { // each takes a little more than its data
		t.Errorf("%d entries had room", last)
	}
	if ch, err := log.amend(appends(ann, last-1, half)); err != nil || ch.Text != "" {
		t.Errorf("the last append again, in a full journal: %+v, %v", ch, err)
	}
	_, err := log.amend(appends(ann, last-1, `1`))
	assert.ErrorIs(t, err, leadership.IndexMismatch, "another one in its place")
	for _, leave := range []leadership.Index{10, 5, 0} { // entries that the snapshot does not stand for
		before := last
		_, err := log.amend(snaps(ann, last-leave, `{}`))
		require.NoError(t, err)
		fill()
		if got, want := last-before, leadership.MaxJournalBytes/leadership.MaxAppendBytes-1-leave; got < want-min(2, leave) || got > want {
			t.Errorf("after a snapshot that leaves %d entries there is room for %d, want %d or two less", leave, got, want)
		}
	}
	if len(log.Text) > 4<<10 {
		t.Errorf("the head has %d bytes", len(log.Text))
	}
}

// Heads have no version: a member more would be damage to the program before.
func TestTheHeadOfALogHasTheMembersThatTheProgramBeforeReads(t *testing.T) {
	journal, checkpoint, ann := newLog(LogJournal), newLog(LogCheckpoint), leaderOf(5)
	for _, rule := range []func(Log) (LogChange, error){opens(ann), appends(ann, 0, `1`, `2`), snaps(ann, 1, `{}`)} {
		journal.amend(rule)
	}
	for _, rule := range []func(Log) (LogChange, error){inherits(ann), puts(ann, `{"n":1}`), inherits(leaderOf(6))} {
		checkpoint.amend(rule)
	}
	const key = `"[A-Za-z0-9_-]{43}"`
	for log, want := range map[*kept]string{
		journal:    `{"token":5,"leader":"leader-5","key":` + key + `,"index":2,"snapshot":1,"last":{"after":0,"sum":` + key + `},"runs":\[{"last":2,"bytes":[0-9]+}\]}`,
		checkpoint: `{"token":6,"leader":"leader-6","key":` + key + `,"left":{"token":5,"leaderId":"leader-5","task":"t","at":"[^"]*"}}`,
	} {
		if !regexp.MustCompile("^" + want + "$").MatchString(log.Text) {
			t.Errorf("the head of the %s is %s\nwant %s", log.ID.Kind, log.Text, want)
		}
	}
}

// It does not know the kind of the secret, and takes every log that is no journal for a checkpoint.
func TestTheProgramBeforeRaisesTheSharedSecretAsACheckpoint(t *testing.T) {
	want := leadership.Key{7}
	written := SecretChange(want)
	raised, err := RaisedLog(Log{ID: LogID{"regent.secret", LogCheckpoint}, Text: written.Text, Body: written.Body}, 1000, true)
	if err != nil || raised.Text == written.Text {
		t.Fatalf("raised as %+v, %v", raised, err)
	}
	if got, err := (Log{ID: SecretLog, Text: raised.Text, Body: raised.Body}).Secret(); err != nil || string(got) != string(want[:]) {
		t.Errorf("the secret is another one: %v", err)
	}
}

func TestACheckpointIsInheritedAsItWasWhenTheMarkWasRaised(t *testing.T) {
	log := newLog(LogCheckpoint)
	log.amend(inherits(leaderOf(5)))
	if p, err := log.Checkpoint(); err != nil || p.Token != 0 {
		t.Errorf("nothing was put: %+v, %v", p, err)
	}
	log.amend(puts(leaderOf(5), `{"n":1}`))
	_, err := log.amend(inherits(leaderOf(7)))
	require.NoError(t, err)
	_, err = log.amend(puts(leaderOf(5), `{"n":2}`))
	assert.ErrorIs(t, err, leadership.TokenStale, "a late put")
	p, err := log.Checkpoint()
	if err != nil || string(p.Data) != `{"n":1}` || p.Token != 5 || p.LeaderID != "leader-5" || p.Task != "t" || !p.At.Equal(aMoment) {
		t.Errorf("inherited %+v, %v", p, err)
	}
	log.WrittenAt = aMoment.Add(1) // of the head with the new mark
	if again, err := log.Checkpoint(); err != nil || !again.At.Equal(p.At) {
		t.Errorf("it was put at %v, and now at %v, %v", p.At, again.At, err)
	}
}

func TestALateCopyOfAnEarlierPutChangesNothing(t *testing.T) {
	log, ann := newLog(LogCheckpoint), leaderOf(5)
	for _, rule := range []func(Log) (LogChange, error){inherits(ann), puts(ann, `1`), putsNext(ann, 2, `2`)} {
		_, err := log.amend(rule)
		require.NoError(t, err)
	}
	before := log.Log
	for what, rule := range map[string]func(Log) (LogChange, error){
		"a copy of the one before":   puts(ann, `1`),
		"another one, at its place":  putsNext(ann, 2, `1`),
		"one beyond the next":        putsNext(ann, 4, `4`),
		"the same data, beyond that": putsNext(ann, 4, `2`),
	} {
		_, err := log.amend(rule)
		if e := new(leadership.Error); !errors.As(err, &e) || e.Code != leadership.IndexMismatch || e.Index != 2 || log.Log != before {
			t.Errorf("%s: %v; the log is %+v", what, err, log.Log)
		}
	}
	ann = inEpoch(ann, 6)
	for _, what := range []string{"again", "again, in a new epoch"} {
		if ch, err := log.amend(putsNext(inEpoch(ann, log.mark(t)), 2, `2`)); err != nil || ch.Text != "" {
			t.Errorf("the last put %s writes %+v, %v", what, ch, err)
		}
		log.amend(inherits(ann))
	}
	_, err := log.amend(putsNext(ann, 3, `3`))
	assert.NoError(t, err, "the next one, in a new epoch")
	bob := leaderOf(7)
	log.amend(inherits(bob))
	_, err = log.amend(puts(bob, `4`))
	assert.NoError(t, err, "the first one of the next leader")
}

// mark is the token that may write.
func (k *kept) mark(t *testing.T) leadership.Token {
	t.Helper()
	var h checkpointHead
	require.NoError(t, k.readHead(&h))
	return h.Token
}

func TestALogOfARestoredStoreIsClosedToAllLeadersOfBefore(t *testing.T) {
	for _, kind := range []LogKind{LogJournal, LogCheckpoint} {
		log, ann := newLog(kind), leaderOf(5)
		write := appends(ann, 0, `1`)
		if kind == LogJournal {
			log.amend(opens(ann))
		} else {
			log.amend(inherits(ann))
			write = puts(ann, `1`)
		}
		log.amend(write)
		body := log.Body
		log.WrittenAt = aMoment.Add(-time.Hour)
		raise := func(l Log) (LogChange, error) { return RaisedLog(l, 1000, true) }
		if ch, err := log.amend(raise); err != nil || ch.Text == "" || ch.Body != body {
			t.Fatalf("%s: %+v, %v", kind, ch, err)
		}
		if ch, err := log.amend(raise); err != nil || ch.Text != "" {
			t.Errorf("%s: again: %+v, %v", kind, ch, err)
		}
		if p, err := log.Checkpoint(); kind == LogCheckpoint && (err != nil || !p.At.Equal(aMoment.Add(-time.Hour))) {
			t.Errorf("the checkpoint is one of %v now, %v", p.At, err)
		}
		for _, token := range []leadership.Token{5, 1000} {
			one := leaderOf(token)
			if _, err := log.amend(opens(one)); kind == LogJournal && err == nil {
				t.Errorf("token %d opens it", token)
			}
			if _, err := log.amend(inherits(one)); kind == LogCheckpoint && err == nil {
				t.Errorf("token %d inherits it", token)
			}
		}
		next := opens(leaderOf(1001))
		if kind == LogCheckpoint {
			next = inherits(leaderOf(1001))
		}
		_, err := log.amend(next)
		assert.NoError(t, err, "%s: the next leader", kind)
	}
}

// A journal is copied in parts, each of which may be the last for a while.
func TestALogIsCopiedUntilAllOfItIsThere(t *testing.T) {
	from, to, ann := newLog(LogJournal), newLog(LogJournal), leaderOf(5)
	for _, rule := range []func(Log) (LogChange, error){opens(ann), appends(ann, 0, `1`), appends(ann, 1, `2`, `3`), appends(ann, 3, `4`), snaps(ann, 1, `{}`)} {
		from.amend(rule)
	}
	from.amend(func(l Log) (LogChange, error) { return RaisedLog(l, 5, false) })
	c := LogCopy{Log: from.Log, Snapshot: from.added[3]}
	for i, want := range []leadership.Index{1, 3} {
		if after, all, err := LogCopied(to.Log, c); after != want || all || err != nil {
			t.Fatalf("part %d goes on after %d, %t, %v; want %d", i, after, all, err, want)
		}
		c.Next = from.added[i+1 : i+2]
		if ch, err := to.amend(func(l Log) (LogChange, error) { return CopyLog(l, c) }); err != nil || !slices.Contains(ch.Add, c.Snapshot) || !slices.Contains(ch.Add, c.Next[0]) {
			t.Fatalf("part %d: %+v, %v", i, ch, err)
		}
		if h, err := to.Journal(); err != nil || h.Index != c.Next[0].Last || h.Snapshot != 1 {
			t.Errorf("after part %d it is a journal at %+v, %v", i, h, err)
		}
	}
	if ch, err := CopyLog(to.Log, c); err != nil || ch.Text != "" || to.Text != from.Text {
		t.Errorf("all is there: %+v, %v", ch, err)
	}
	bare := newLog(LogJournal)
	if ch, err := CopyLog(bare.Log, LogCopy{Log: bare.Log}); err != nil || ch.Text != "" {
		t.Errorf("nothing: %+v, %v", ch, err)
	}
	bare.amend(opens(ann))
	if ch, err := CopyLog(newLog(LogJournal).Log, LogCopy{Log: bare.Log}); err != nil || ch.Text != bare.Text || len(ch.Add) > 0 {
		t.Errorf("one without entries: %+v, %v", ch, err)
	}
	bob := leaderOf(6)
	head := func(token leadership.Token, index, snapshot leadership.Index) Log {
		return Log{ID: from.ID, Text: HeadText(journalHead{Mark: Mark{Token: token}, Index: index, Snapshot: snapshot})}
	}
	for _, there := range []struct {
		Log
		all bool
	}{{head(6, 4, 1), true}, {head(6, 5, 1), true}, {head(6, 3, 1), false}, {head(5, 5, 1), false}, {head(5, 4, 2), false}} {
		if _, all, err := LogCopied(there.Log, c); all != there.all || errors.Is(err, leadership.RecordCorrupt) == all {
			t.Errorf("where %s is: all %t, %v", there.Text, all, err)
		}
	}
	if after, all, err := LogCopied(head(5, 4, 1), c); after != 4 || all || err != nil {
		t.Errorf("the entries are there, and not the head: %d, %t, %v", after, all, err)
	}
	from, to = newLog(LogCheckpoint), newLog(LogCheckpoint)
	from.amend(inherits(ann))
	from.amend(puts(ann, `1`))
	c = LogCopy{Log: from.Log}
	if _, all, err := LogCopied(to.Log, c); all || err != nil {
		t.Errorf("no checkpoint: %t, %v", all, err)
	}
	to.amend(func(l Log) (LogChange, error) { return CopyLog(l, c) })
	if _, all, err := LogCopied(to.Log, c); !all || err != nil || to.Body != `1` || to.Text != from.Text {
		t.Errorf("a checkpoint: %+v, %t, %v", to.Log, all, err)
	}
	to.Body = `2`
	if _, all, err := LogCopied(to.Log, c); all || err != nil {
		t.Errorf("another checkpoint: %t, %v", all, err)
	}
	to.amend(inherits(bob))
	if _, all, err := LogCopied(to.Log, c); !all || err != nil {
		t.Errorf("a checkpoint that is in use: %t, %v", all, err)
	}
}

func TestAHeadThatCannotBeReadIsRefused(t *testing.T) {
	for _, text := range []string{`{`, `{"x":1}`, `{"index":"1"}`, `[]`, `{"token":1,"key":"AAAA"}`} {
		log := Log{ID: LogID{"jobs", LogJournal}, Text: text}
		for what, rule := range map[string]func(Log) (LogChange, error){
			"open": opens(leaderOf(5)), "append": appends(leaderOf(5), 0, `1`), "snapshot": snaps(leaderOf(5), 1, `1`),
			"raise": func(l Log) (LogChange, error) { return RaisedLog(l, 9, true) },
		} {
			if ch, err := rule(log); !errors.Is(err, leadership.RecordCorrupt) || ch.Text != "" {
				t.Errorf("%s of %s: %+v, %v", what, text, ch, err)
			}
		}
	}
	for _, s := range []Segment{{1, 2, `[{"token":1,"data":1}]`, aMoment}, {1, 1, `{`, aMoment}, {0, 1, `[{"token":1,"data":1}]`, aMoment}} {
		if all, err := s.Entries(); !errors.Is(err, leadership.RecordCorrupt) {
			t.Errorf("%+v is read as %+v, %v", s, all, err)
		}
	}
}

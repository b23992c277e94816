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
)

func begins(c Renewal, id string) func(Log) (LogChange, error) {
	return func(l Log) (LogChange, error) { return BeginEffect(l, c, leadership.EffectID(id), "") }
}

func finishes(c Renewal, id, result string) func(Log) (LogChange, error) {
	return func(l Log) (LogChange, error) {
		if result == "" {
			return FinishEffect(l, c, leadership.EffectID(id), nil)
		}
		return FinishEffect(l, c, leadership.EffectID(id), json.RawMessage(result))
	}
}

func opensEffects(c Renewal) func(Log) (LogChange, error) {
	return func(l Log) (LogChange, error) { return OpenEffects(l, c) }
}

// does runs rules that must succeed.
func (k *kept) does(t *testing.T, rules ...func(Log) (LogChange, error)) {
	t.Helper()
	for i, rule := range rules {
		_, err := k.amend(rule)
		require.NoError(t, err, "rule %d", i)
	}
}

func (k *kept) effects(t *testing.T) (lines []string) {
	t.Helper()
	all, err := k.Effects()
	require.NoError(t, err)
	for _, e := range all.Effects {
		lines = append(lines, fmt.Sprintf("%s %s %d %s %s", e.ID, e.State, e.Token, e.At.Format(time.TimeOnly), e.Result))
	}
	return lines
}

// The time of an effect is that of the change that noted it, also after the store was moved or
// restored, and after other changes.
func TestEffectsKeepTheirTimes(t *testing.T) {
	log, ann := newLog(LogEffects), leaderOf(5)
	log.does(t, opensEffects(ann), begins(ann, "a"))
	first := log.WrittenAt
	log.WrittenAt = first.Add(time.Hour)
	log.does(t, begins(ann, "a")) // which writes nothing
	log.WrittenAt = first
	before := log.effects(t)
	log.does(t, func(l Log) (LogChange, error) { return RaisedLog(l, 9, true) })
	log.WrittenAt = first.Add(time.Hour)
	if after := log.effects(t); strings.Join(after, ",") != strings.Replace(strings.Join(before, ","), "begun", "inDoubt", 1) {
		t.Errorf("was %q, is %q", before, after)
	}
	for _, late := range []func(Log) (LogChange, error){begins(ann, "b"), finishes(ann, "a", ""), opensEffects(ann)} {
		_, err := log.amend(late)
		assert.ErrorIs(t, err, leadership.TokenStale, "after the raise")
	}
	if ch, err := RaisedLog(Log{ID: log.ID}, 9, true); err != nil || ch.Text != "" {
		t.Errorf("a log never written is raised: %+v, %v", ch, err)
	}
}

// Of small effects MaxEffects are kept, and of the largest as many as the limit says.
func TestTheOldestEffectsThatAreDoneAreForgotten(t *testing.T) {
	for _, c := range []struct {
		id, result string
		kept       int
	}{
		{"e%d", "1", leadership.MaxEffects},
		{"%0128d", `"` + strings.Repeat("x", leadership.MaxResultBytes-2) + `"`, 370},
	} {
		log, ann := newLog(LogEffects), leaderOf(5)
		log.does(t, opensEffects(ann), begins(ann, "doubt"))
		h, all, err := log.readEffects()
		for i := 1; i < c.kept; i++ {
			all = append(all, leadership.Effect{ID: leadership.EffectID(fmt.Sprintf(c.id, i)), Token: leadership.MaxToken, LeaderID: leadership.CandidateID(strings.Repeat("l", 100)), At: aMoment, State: leadership.EffectDone, Result: json.RawMessage(c.result)})
		}
		full, failed := writtenEffects(h, all)
		if err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		log.Text, log.Body = full.Text, full.Body
		if got := len(log.effects(t)); got != c.kept {
			t.Errorf("%d of %d effects are kept", got, c.kept)
		}
		for i := range 3 {
			id := fmt.Sprintf(c.id, 5000+i)
			log.does(t, begins(ann, id), finishes(ann, id, c.result))
		}
		kept := log.effects(t)
		if len(kept) > leadership.MaxEffects || len(kept) < c.kept || len(log.Body) > leadership.MaxEffectsBytes || !strings.HasPrefix(kept[0], "doubt begun") {
			t.Errorf("%d are kept in %d bytes, from %s", len(kept), len(log.Body), kept[0])
		}
		if c.kept == leadership.MaxEffects && !strings.HasPrefix(kept[1], fmt.Sprintf(c.id+" ", 4)) {
			t.Errorf("the oldest that is done is %s", kept[1])
		}
	}
}

func TestSoManyEffectsMayBeOpen(t *testing.T) {
	log, ann := newLog(LogEffects), leaderOf(5)
	log.does(t, opensEffects(ann))
	for i := range leadership.MaxOpenEffects {
		log.does(t, begins(ann, fmt.Sprint("e", i)))
	}
	if _, err := log.amend(begins(ann, "more")); !errors.Is(err, leadership.LimitExceeded) || !strings.Contains(err.Error(), "e0, e1, e2") {
		t.Errorf("one more: %v", err)
	}
	log.does(t, begins(ann, "e7"), finishes(ann, "e7", ""), begins(ann, "more"))
}

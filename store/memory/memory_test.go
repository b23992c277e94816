package memory_test

import (
	"sync/atomic"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/store/memory"
	"regent/store/storetest"
)

func TestTheStoreKeepsItsContract(t *testing.T) { storetest.RunStore(t, backing) }

func TestTheJournalKeepsItsContract(t *testing.T) { storetest.RunJournal(t, backing) }

func TestTheProtocolHoldsOnMemory(t *testing.T) { storetest.RunProtocol(t, backing) }

func TestTheProtocolHoldsOnMemoryOverHTTP(t *testing.T) { storetest.RunProtocolOverHTTP(t, backing) }

func backing(testing.TB) storetest.Backing {
	var ahead atomic.Int64
	first := memory.New(memory.Config{
		Now:     func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
		History: storetest.History,
	})
	open := func(t testing.TB, c rule.Codec) service.Store {
		s := first.OpenAs(c)
		t.Cleanup(func() { s.Close() })
		return s
	}
	return storetest.Backing{
		Open:    func(t testing.TB) service.Store { return open(t, rule.Codec{}) },
		OpenAs:  open,
		Advance: func(_ testing.TB, d time.Duration) { ahead.Add(int64(d)) },
		Damage:  func(_ testing.TB, e leadership.Election, d storetest.Damage) { first.Spoil(e, damages[d]) },
	}
}

// damages are what comes nearest in a store whose records are not encoded.
var damages = map[storetest.Damage]func(*rule.Record){
	storetest.MissingField:  func(r *rule.Record) { r.KeyHash = leadership.KeyHash{} },
	storetest.WrongType:     func(r *rule.Record) { r.LeaderID = "no such name!" },
	storetest.UnknownSchema: func(r *rule.Record) { r.LockFor = -1 },
	storetest.TokenBehind:   func(r *rule.Record) { r.Token-- },
	storetest.RecordGone:    nil,
	storetest.LeaderNoLease: func(r *rule.Record) { r.LeaseDuration = 0 },
	storetest.FutureBeat:    func(r *rule.Record) { r.HeartbeatAt = r.HeartbeatAt.AddDate(8000, 0, 0) },
}

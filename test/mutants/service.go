package mutants

// service are bugs in what stands between the rules and a store.
func service() []Mutant {
	const (
		calls = "leadership/service.go"
	)
	return []Mutant{
		{
			Name: "a late heartbeat is not taken back: a renewal that was committed after the end revives the lease",
			Had:  "whoever learns the time of a commit afterwards, and does not look at it",
			File: calls, Quick: true,
			Old: `return before.IsZero() || snap.Now.Before(before) }`,
			New: `return true || snap.Now.Before(before) }`,
			By:  []Tests{{inRules, "TestARenewalThatIsCommittedAfterTheEndIsTakenBackAndLost"}},
		},
		{
			Name: "a heartbeat that was committed at the very end counts",
			Had:  "whoever has compared two instants",
			File: calls, Quick: true,
			Old: `return before.IsZero() || snap.Now.Before(before) }`,
			New: `return before.IsZero() || !snap.Now.After(before) }`,
			By:  []Tests{{inRules, "TestARenewalThatIsCommittedAtTheVeryEndIsLost"}},
		},
		{
			Name: "a captured result is not reset when the transaction runs again: what a run that was thrown away decided is told too",
			Had:  "golang/oscar, whose lock was once a held one for that",
			File: calls, Quick: true,
			Old: `		before, events = time.Time{}, nil // the store may run this again
		if err := ctx.Err(); err != nil {
			return Change{}, fmt.Errorf("%w: caller cancelled: %w", StoreUnavailable, err)
		}
		ch, err := rule(snap)
		before, events = ch.Before, ch.Events`,
			New: `		if err := ctx.Err(); err != nil {
			return Change{}, fmt.Errorf("%w: caller cancelled: %w", StoreUnavailable, err)
		}
		ch, err := rule(snap)
		before, events = ch.Before, append(events, ch.Events...)`,
			By: []Tests{{inRules, "TestOnlyTheRunThatIsCommittedCounts"}},
		},
		{
			Name: "published before it is committed: what is then refused or lost was announced",
			Had:  "whoever sends the message first",
			File: calls, Quick: true,
			Old: `			events[i].RequestID = requestID
		}
		return ch, err
	})
	if err != nil {
		return Snapshot{}, time.Time{}, err
	}
	s.publish(snap, events)`,
			New: `			events[i].RequestID = requestID
		}
		s.publish(snap, events)
		return ch, err
	})
	if err != nil {
		return Snapshot{}, time.Time{}, err
	}`,
			By: []Tests{{inRules, "TestNobodyIsToldOfAChangeThatWasNotCommittedOrMayNotHaveBeen"}},
		},
		{
			Name: "the request's id is not recorded, so that nobody finds out what became of a call",
			Had:  "whoever has tried to resolve an unknown outcome later",
			File: calls,
			Old:  `events[i].RequestID = requestID`,
			New:  `events[i].RequestID = requestID[:0]`,
			By:   []Tests{{inMemory, "TestTheProtocolHoldsOnMemory"}},
		},
		{
			Name: "a lease is granted to a caller who has gone",
			Had:  "etcd, which told a waiter that it had the lock without another look at its lease (etcd#11456)",
			File: calls, Quick: true,
			Old: `if err := ctx.Err(); err != nil {
			return Change{}, fmt.Errorf(`,
			New: `if err := context.WithoutCancel(ctx).Err(); err != nil {
			return Change{}, fmt.Errorf(`,
			By: []Tests{{inRules, "TestNothingIsGrantedToACallerWhoHasGone"}},
		},
		{
			Name: "an error of the store is taken for the end of the list, and elections are missing from it",
			Had:  "whoever has read the last error of an iterator as its end",
			File: calls, Quick: true,
			Old: `		listing, err := s.store.List(ctx, prefix, after, MaxPageSize)
		if err != nil {
			return err
		}`,
			New: `		listing, err := s.store.List(ctx, prefix, after, MaxPageSize)
		if err != nil {
			return nil
		}`,
			By: []Tests{{inRules, "TestAListThatBreaksOffIsAnErrorAndNotItsEnd"}},
		},
		{
			Name: "a history that begins too late is told as if nothing were missing",
			Had:  "watches that do not know of compaction",
			File: calls,
			Old: `	if oldest > 0 {
		return nil, Compacted(r.Election, oldest)
	}
	return events, nil`,
			New: `	if oldest > 0 && err != nil {
		return nil, Compacted(r.Election, oldest)
	}
	return events, nil`,
			By: []Tests{{inMemory, "TestTheStoreKeepsItsContract"}},
		},
	}
}

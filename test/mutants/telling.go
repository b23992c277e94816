package mutants

// telling are bugs on the way of an event from its commit to those who want to hear of it, and in what is remembered until then.
func telling() []Mutant {
	const (
		outbox = "leadership/instance/internal/outbox"
		notify = "leadership/notify"
		cache  = "leadership/cache"
		topic  = notify + "/topic.go"
		slot   = cache + "/slot.go"
		killed = "TestEveryChangeIsAnnouncedInOrderWhateverIsKilled"
	)
	return []Mutant{
		{
			Name: "the announcer marks before it publishes: what fails then is never announced",
			Had:  "outboxes that are emptied first",
			File: outbox + "/announce.go", Quick: true,
			Old: `	acked, err := o.publish(ctx, news)
	if acked > 0 {
		failpoint.Hit("outbox:published")
		o.markSoon(news[:acked])
	}`,
			New: `	o.markSoon(news)
	acked, err := o.publish(ctx, news)
	if acked > 0 {
		failpoint.Hit("outbox:published")
	}`,
			By: []Tests{{outbox, "TestAfterAFailureTheSameInstanceSweepsSoon"}, {outbox, killed}},
		},
		{
			Name: "the sweep marks what it has read, and not what was acknowledged",
			Had:  "outboxes that are emptied first",
			File: outbox + "/sweep.go", Quick: true,
			Old: `if out := page[:len(page)-len(news)+acked]; len(out) > 0 {`,
			New: `if out := page; len(out) > 0 {`,
			By:  []Tests{{outbox, "TestOneElectionThatFailsHoldsUpNoOther"}, {outbox, killed}},
		},
		{
			Name: "what was only heard counts as announced: a stray message keeps an event from being announced",
			Had:  "subscribers that believe what any publisher can write",
			File: outbox + "/known.go", Quick: true,
			Old: `	return after(events, r.sure)`,
			New: `	return after(events, max(r.sure, r.out))`,
			By:  []Tests{{outbox, "TestStrayMessageKeepsNothingFromBeingAnnounced"}},
		},
		{
			Name: "a sweep publishes an election while the announcer does",
			Had:  "ordering keys with two publishers",
			File: outbox + "/queue.go",
			Old: `		if l.busy {
			return false
		}
		q.waiting`,
			New: `		if l.busy && q.closed {
			return false
		}
		q.waiting`,
			By: []Tests{{outbox, "TestOrderHoldsWhileManyInstancesSweepTheSameElections|" + killed}},
		},
		{
			Name: "an event overtakes the one before it, which another instance committed and has not published yet",
			Had:  "instances that publish what they know of",
			File: outbox + "/announce.go", Quick: true,
			Old: `	if !follow(news, out) {`,
			New: `	if len(news) == 0 {`,
			By:  []Tests{{outbox, "TestEventWaitsForTheOneBeforeItThatAnotherInstanceCommitted"}, {outbox, killed}},
		},
		{
			Name: "after one failure nothing of an election is tried any more",
			Had:  "Pub/Sub's clients, whose publishers stop at the first error of a key until they are told to go on",
			File: outbox + "/sweep.go", Quick: true,
			Old: `	o.found(news...)
	o.left.join(due)`,
			New: `	o.found(news...)
	clear(due)`,
			By: []Tests{{outbox, "TestAfterAFailureTheSameInstanceSweepsSoon"}},
		},
		{
			Name: "what another instance left behind is left for good",
			Had:  "outboxes whose poller trusts its notifications",
			File: outbox + "/sweep.go",
			Old:  `		if now-first >= age {`,
			New:  `		if now-first < 0 {`,
			By:   []Tests{{outbox, "TestWhatADeadInstanceCommittedIsAnnouncedByAnother|TestInstanceCutFromTheTopicIsAnnouncedByAnother|TestSweepAnnouncesAllThatWasLeftBehind"}},
		},
		{
			Name: "an instance tells its watchers nothing of what it finds in the outbox, so a broken topic silences them",
			Had:  "Regent, before every look was handed to the instance itself",
			File: outbox + "/sweep.go", Quick: true,
			Old: `	o.found(news...)
`,
			New: `	_ = news
`,
			By: []Tests{{outbox, "TestCutInstanceTellsItsWatchersWhatAnotherLeftBehind"}},
		},
		{
			Name: "the hub does not empty the cache: an instance hears of a new leader and shows the old one",
			Had:  "whoever invalidates what they write, and not what they hear of",
			File: "leadership/instance/instance.go",
			Old: `		i.cache.Heard(e)
		i.expiry.Heard(e)`,
			New: `		i.expiry.Heard(e)`,
			By:  []Tests{{"leadership/instance", "TestWhatOneInstanceChangesTheOtherShowsAtOnce"}},
		},
		{
			Name: "a cached reading has no age: it does not say how long ago the store was asked",
			Had:  "Consul's stale reads, before they told (consul#2644)",
			File: slot, Quick: true,
			Old: `return c.aged(en.lease, now-en.asked), true`,
			New: `return c.aged(en.lease, 0), true`,
			By:  []Tests{{cache, "TestEveryReadingWasTrueWithinItsAgeAndNeverGoesBack"}, {cache, "TestTheStoreIsAskedOnceWithinTheExpiry"}},
		},
		{
			Name: "a cached reading has no bound: past it old data are shown while the store is away",
			Had:  "caches that are kind to their readers",
			File: slot, Quick: true,
			Old: `	if now >= en.until {
		return reading, false
	}`,
			New: `	if now >= en.until && c.expiry == 0 {
		return reading, false
	}`,
			By: []Tests{
				{cache, "TestPastTheBoundAFailingStoreIsAnErrorAndNeverOldData"},
				{cache, "TestEveryReadingWasTrueWithinItsAgeAndNeverGoesBack"},
			},
		},
		{
			Name: "the age of a reading counts from the reply, and not from when the store was asked",
			Had:  "client-go, which notes the time after the reply",
			File: slot,
			Old:  `return &entry{lease: l, asked: asked, until: asked + left}`,
			New: `asked = c.now()
	return &entry{lease: l, asked: asked, until: asked + left}`,
			By: []Tests{
				{cache, "TestTheAgeOfWhatIsLearntCountsFromWhenTheStoreWasAsked"},
				{cache, "TestEveryReadingWasTrueWithinItsAgeAndNeverGoesBack"},
			},
		},
		{
			Name: "a read that began before an event fills the cache again with what was before it",
			Had:  "look-aside caches; Facebook's memcache has leases of its own against it",
			File: slot, Quick: true,
			Old: `if en.lease.Revision == s.floor && !older {`,
			New: `if !older {`,
			By: []Tests{
				{cache, "TestNobodyJoinsAReadThatMayHaveBegunBeforeTheNews"},
			},
		},
		{
			Name: "a reader that has seen more is shown less",
			Had:  "ZooKeeper's clients that reconnect to a server which is behind",
			File: slot, Quick: true,
			Old: `if en == nil || en.lease.Revision < known {`,
			New: `if en == nil {`,
			By:  []Tests{{cache, "TestAReaderIsShownNothingOlderThanItKnows"}, {cache, "TestEveryReadingWasTrueWithinItsAgeAndNeverGoesBack"}},
		},
		{
			Name: "a lease is shown as held after its end, because the cached reading lasts longer",
			Had:  "TTLs that know nothing of what they hold",
			File: slot, Quick: true,
			Old: `		left = min(left, l.ExpiresIn)
`,
			New: `		left = max(left, min(left, l.ExpiresIn))
`,
			By: []Tests{{cache, "TestAnEntryIsOverWhenItsLeaseMayHaveEnded"}},
		},
		{
			Name: "a watcher that is behind is told what is in memory, whatever is missing before it",
			Had:  "at-least-once topics, by their nature",
			File: notify + "/run.go", Quick: true,
			Old: `	if !r.has(revision + 1) {`,
			New: `	if r.first() > revision+1 {
		return r
	}
	if !r.has(revision + 1) {`,
			By: []Tests{{notify, "TestNoWatchMissesAnything"}},
		},
		{
			Name: "events come to a feed out of order: what is heard is passed on, whatever is missing before it",
			Had:  "at-least-once topics, by their nature",
			File: notify + "/window.go", Quick: true,
			Old: `if e.Revision != w.known[e.Election]+1 {`,
			New: `if e.Revision < w.known[e.Election]+1 {`,
			By: []Tests{
				{notify, "TestWhatAFeedWasNotToldIsFound|TestAnElectionThatTheFeedHasNotHeardOfIsLookedUpOnce"},
				{notify, "TestNoFeedMissesAnythingThatTheHubHears"},
			},
		},
		{
			Name: "what was missed while nothing was heard is not looked for when events come again",
			Had:  "subscribers that take a new connection for an unbroken one",
			File: topic, Quick: true,
			Old: `	t.synced = false
	clear(t.looks)`,
			New: `	clear(t.looks)`,
			By:  []Tests{{notify, "TestALostEventArrivesWhenTheHubIsLiveAnew"}},
		},
		{
			Name: "a look into the history that began before the hub was live counts as one that came after",
			Had:  "list-then-watch without a version between the two",
			File: topic, Quick: true,
			Old: `	clear(t.looks) // they may`,
			New: `	// they may`,
			By:  []Tests{{notify, "TestALookThatBeganBeforeTheHubWasLiveIsNotShared"}},
		},
		{
			Name: "a feed that is read too slowly goes on with what is in memory, and says nothing of the gap",
			Had:  "every ring buffer without a reader's place",
			File: notify + "/feed.go",
			Old: `	case f.next < w.first:
		return nil, nil, ErrSlow
	}`,
			New: `	case f.next < w.first:
		f.next = w.first
	}`,
			By: []Tests{{notify, "TestASlowFeedIsEndedAndDisturbsNobody"}},
		},
		{
			Name: "a lease that runs out with nobody there is announced by nobody",
			Had:  "services that expire when somebody asks",
			File: "leadership/expiry/lookout.go", Quick: true,
			Old: `		l.keep(&term{election: lease.Election, revision: lease.Revision, due: due})
	}`,
			New: `		l.keep(&term{election: lease.Election, revision: lease.Revision, due: due + lease.ExpiresIn})
	}`,
			By: []Tests{{"leadership/expiry", "TestALeaseThatRunsOutIsLookedAfterOnceAndSoon"}},
		},
	}
}

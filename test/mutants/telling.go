package mutants

// telling are bugs on the way of an event from its commit to those who want to hear of it, and in what is remembered until then.
func telling() []Mutant {
	const (
		relay  = "leadership/relay"
		notify = "leadership/instance/internal/hub"
		cache  = "leadership/instance/internal/cache"
		topic  = notify + "/topic.go"
		slot   = cache + "/slot.go"
		killed = "TestEveryChangeIsAnnouncedInOrderWhateverIsKilled"
	)
	return []Mutant{
		{
			Name: "the announcer marks before it publishes: what fails then is never announced",
			Had:  "outboxes that are emptied first",
			File: relay + "/announce.go", Quick: true,
			Old: `	acked, err := r.send(ctx, events)
	if acked > 0 {
		failpoint.Hit("relay:published")
		r.marks.add(events[:acked])
	}`,
			New: `	r.marks.add(events)
	acked, err := r.send(ctx, events)
	if acked > 0 {
		failpoint.Hit("relay:published")
	}`,
			By: []Tests{{relay, "TestAnAcknowledgementOfAPartCountsForThatPart"}, {relay, killed}},
		},
		{
			Name: "the relay marks before it publishes: what another instance left behind is never announced",
			Had:  "outboxes that are emptied first",
			File: relay + "/left.go", Quick: true,
			Old: `	out, err := r.republish(ctx, left)
	for batch := range slices.Chunk(out, leadership.MaxBatch) {`,
			New: `	var out []leadership.EventID
	for _, e := range left {
		out = append(out, e.ID())
	}
	defer r.republish(ctx, left)
	for batch := range slices.Chunk(out, leadership.MaxBatch) {`,
			By: []Tests{{relay, "TestOneElectionThatFailsHoldsUpNoOther"}, {relay, killed}},
		},
		{
			Name: "what was only heard counts as acknowledged: a stray message keeps an event from being announced",
			Had:  "whoever believes what any publisher can write",
			File: relay + "/known.go", Quick: true,
			Old: `k.raise(id.Election, reach{out: id.Revision})`,
			New: `k.raise(id.Election, reach{out: id.Revision, acked: id.Revision})`,
			By:  []Tests{{relay, "TestAStrayMessageOnTheTopicKeepsNothingFromBeingAnnounced"}},
		},
		{
			Name: "two publish for one election at the same time, and a later event overtakes an earlier one",
			Had:  "ordering keys with two publishers",
			File: relay + "/turns.go",
			Old:  `turn{taken: make(chan struct{}, 1)}`,
			New:  `turn{taken: make(chan struct{}, 2)}`,
			By: []Tests{
				{relay, "TestOfTwoChangesToldInTheWrongOrderBothAreAnnouncedInTheRightOne|" + killed},
			},
		},
		{
			Name: "an event overtakes the one before it, which another instance committed and has not published yet",
			Had:  "whoever publishes what it knows of",
			File: relay + "/announce.go", Quick: true,
			Old: `if news := after(told, out); follow(news, out) {`,
			New: `if news := after(told, out); len(news) > 0 {`,
			By:  []Tests{{relay, "TestAnEventWaitsForTheOneBeforeItThoughAnotherInstanceCommittedThat"}, {relay, killed}},
		},
		{
			Name: "a paused ordering key is not resumed: after one failure nothing is tried any more",
			Had:  "Pub/Sub's clients, whose publishers stop at the first error of a key until they are told to go on",
			File: relay + "/wait.go", Quick: true,
			Old: `	p.until, p.delay = 0, backoff{}`,
			New: `	p.delay = backoff{}`,
			By:  []Tests{{relay, "TestPausesGrowWhileTheTopicFailsAndEndWhenItAnswers"}},
		},
		{
			Name: "what was left behind is left for good: nobody looks into the outbox unless it was told to",
			Had:  "outboxes whose poller trusts its notifications",
			File: relay + "/left.go",
			Old: `	if err != nil || len(left) > 0 || !waiting {
		return left, err
	}`,
			New: `	if err != nil || len(left) > 0 || waiting {
		return left, err
	}`,
			By: []Tests{{relay, "TestWhatADeadInstanceCommittedIsAnnouncedByAnother|TestASweepAnnouncesAllThatWasLeftBehind"}},
		},
		{
			Name: "a relay goes on after its term is over",
			Had:  "every leader of a background job that asks once",
			File: relay + "/term.go",
			Old:  `	keeping.Go(func() { end(r.keep(leading, t)) })`,
			New:  `	keeping.Go(func() { r.keep(leading, t) })`,
			By:   []Tests{{relay, "TestARelayThatLosesItsLeaseStopsAtOnce|TestARelayThatCannotRenewStopsAtItsDeadline"}},
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
			File: "leadership/instance/internal/expiry/lookout.go", Quick: true,
			Old: `		l.keep(&term{election: lease.Election, revision: lease.Revision, due: due})
	}`,
			New: `		l.keep(&term{election: lease.Election, revision: lease.Revision, due: due + lease.ExpiresIn})
	}`,
			By: []Tests{{"leadership/instance/internal/expiry", "TestALeaseThatRunsOutIsLookedAfterOnceAndSoon"}},
		},
	}
}

package mutants

// telling are bugs on the way of an event from its commit to those who want to hear of it, and in what is remembered until then.
func telling() []Mutant {
	const (
		relay  = "leadership/instance/internal/outbox"
		hub    = "leadership/instance/internal/hub"
		view   = "leadership/instance/internal/view"
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
			Old:  `	i.hub.Publish(e)`,
			New:  `	i.hub.Publish()`,
			By:   []Tests{{"leadership/instance", "TestWhatOneInstanceChangesTheOtherShowsAtOnce"}},
		},
		{
			Name: "a cached reading has no age: it does not say how long ago the store was asked",
			Had:  "Consul's stale reads, before they told (consul#2644)",
			File: hub + "/read.go", Quick: true,
			Old: `return h.aged(l, now-l.Asked), true`,
			New: `return h.aged(l, 0), true`,
			By:  []Tests{{hub, "TestEveryReadingWasTrueWithinItsAgeAndNeverGoesBack"}, {hub, "TestTheStoreIsAskedOnceWithinTheExpiry"}},
		},
		{
			Name: "a cached reading has no bound: past it old data are shown while the store is away",
			Had:  "caches that are kind to their readers",
			File: hub + "/read.go", Quick: true,
			Old: `	if now >= l.Over(h.expiry) {
		return reading, false
	}`,
			New: `	if now >= l.Over(h.expiry) && h.expiry == 0 {
		return reading, false
	}`,
			By: []Tests{
				{hub, "TestPastTheBoundAFailingStoreIsAnErrorAndNeverOldData"},
				{hub, "TestEveryReadingWasTrueWithinItsAgeAndNeverGoesBack"},
			},
		},
		{
			Name: "the age of a reading counts from the reply, and not from when the store was asked",
			Had:  "client-go, which notes the time after the reply",
			File: view + "/lease.go",
			Old: `e.reads > 0 {
			e.lease = &Lease{l, asked, now}`,
			New: `e.reads > 0 {
			e.lease = &Lease{l, now, now}`,
			By: []Tests{
				{hub, "TestTheAgeOfWhatIsLearntCountsFromWhenTheStoreWasAsked"},
				{hub, "TestEveryReadingWasTrueWithinItsAgeAndNeverGoesBack"},
			},
		},
		{
			Name: "a read that began before an event fills the cache again with what was before it",
			Had:  "look-aside caches; Facebook's memcache has leases of its own against it",
			File: view + "/lease.go", Quick: true,
			Old: `	case order < 0 && !later:
		return false`,
			New: `	case order < 0 && asked < 0:
		return false`,
			By: []Tests{
				{hub, "TestNobodyJoinsAReadThatMayHaveBegunBeforeTheNews"},
			},
		},
		{
			Name: "a reader that has seen more is shown less",
			Had:  "ZooKeeper's clients that reconnect to a server which is behind",
			File: view + "/read.go", Quick: true,
			Old: `e.lease.Deleted || e.lease.Revision < known {`,
			New: `e.lease.Deleted {`,
			By:  []Tests{{hub, "TestAReaderIsShownNothingOlderThanItKnows"}, {hub, "TestEveryReadingWasTrueWithinItsAgeAndNeverGoesBack"}},
		},
		{
			Name: "a lease is shown as held after its end, because the cached reading lasts longer",
			Had:  "TTLs that know nothing of what they hold",
			File: view + "/read.go", Quick: true,
			Old: `		left = min(left, l.ExpiresIn)
`,
			New: `		left = max(left, min(left, l.ExpiresIn))
`,
			By: []Tests{{hub, "TestAnEntryIsOverWhenItsLeaseMayHaveEnded"}},
		},
		{
			Name: "a watcher that is behind is told what is in memory, whatever is missing before it",
			Had:  "at-least-once topics, by their nature",
			File: view + "/tail.go", Quick: true,
			Old: `	if !t.has(revision + 1) {`,
			New: `	if t.first() > revision+1 {
		return t
	}
	if !t.has(revision + 1) {`,
			By: []Tests{{hub, "TestNoWatchMissesAnything"}},
		},
		{
			Name: "events come to a feed out of order: what is heard is passed on, whatever is missing before it",
			Had:  "at-least-once topics, by their nature",
			File: hub + "/window.go", Quick: true,
			Old: `if e.Revision != w.known[e.Election]+1 {`,
			New: `if e.Revision < w.known[e.Election]+1 {`,
			By: []Tests{
				{hub, "TestWhatAFeedWasNotToldIsFound|TestAnElectionThatTheFeedHasNotHeardOfIsLookedUpOnce"},
				{hub, "TestNoFeedMissesAnythingThatTheHubHears"},
			},
		},
		{
			Name: "what was missed while nothing was heard is not looked for when events come again",
			Had:  "subscribers that take a new connection for an unbroken one",
			File: view + "/history.go", Quick: true,
			Old: `	h.synced = false
	h.generation++`,
			New: `	h.generation++`,
			By:  []Tests{{hub, "TestALostEventArrivesWhenTheHubIsLiveAnew"}},
		},
		{
			Name: "a look into the history that began before the hub was live counts as one that came after",
			Had:  "list-then-watch without a version between the two",
			File: view + "/history.go", Quick: true,
			Old: `	h.synced = false
	h.generation++`,
			New: `	h.synced = false`,
			By:  []Tests{{hub, "TestALookThatBeganBeforeTheHubWasLiveIsNotShared"}},
		},
		{
			Name: "a feed that is read too slowly goes on with what is in memory, and says nothing of the gap",
			Had:  "every ring buffer without a reader's place",
			File: hub + "/feed.go",
			Old: `	case f.next < w.first:
		return nil, nil, ErrSlow
	}`,
			New: `	case f.next < w.first:
		f.next = w.first
	}`,
			By: []Tests{{hub, "TestASlowFeedIsEndedAndDisturbsNobody"}},
		},
		{
			Name: "a lease that runs out with nobody there is announced by nobody",
			Had:  "services that expire when somebody asks",
			File: view + "/end.go", Quick: true,
			Old: `return now + left + left/driftPart +`,
			New: `return now + 2*left +`,
			By:  []Tests{{hub, "TestALeaseThatRunsOutIsLookedAfterOnceAndSoon"}},
		},
	}
}

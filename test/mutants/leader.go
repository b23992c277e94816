package mutants

// leaders are bugs in the leader's half of the protocol: its deadline, its campaign, its command, and the fence around what it writes.
func leaders() []Mutant {
	const (
		client   = "leadership/client"
		lease    = client + "/lease.go"
		keep     = client + "/keep.go"
		campaign = client + "/campaign.go"
		belief   = "leadership/belief.go"
		call     = client + "/do.go"
		leash    = "cmd/regent/internal/leash"
		fence    = "leadership/fence"
		beliefs  = "TestBeliefsNeverOverlapWhileClocksAreWithinTheDrift"
	)
	return []Mutant{
		{
			Name: "the deadline of a grant is counted from the reply",
			Had:  "client-go, which notes the time after the reply",
			File: campaign, Quick: true,
			Old: `l, err := k.newLease(within, k.sent, grant)`,
			New: `l, err := k.newLease(within, k.clock(), grant)`,
			By: []Tests{
				{client, "TestReplyAfterTheDeadlineDoesNotMakeALeader|TestGrantThatArrivesTooLateIsAnErrorAndIsReleased"},
				{client, beliefs},
			},
		},
		{
			Name: "the deadline of a renewal is counted from the reply",
			Had:  "client-go, which notes the time after the reply",
			File: keep, Quick: true,
			Old: `return k.renewed(sent, lease)`,
			New: `return k.renewed(k.client.clock(), lease)`,
			By:  []Tests{{client, beliefs}},
		},
		{
			Name: "the deadline does not allow for drift: a clock that is slow by a thousandth believes for too long",
			Had:  "Gray and Cheriton's warning of 1989, not heeded",
			File: "leadership/deadline.go", Quick: true,
			Old: `return d - d/Drift - 1`,
			New: `return d - 1`,
			By: []Tests{
				{inRules, "TestAClockThatIsSlowByTheDriftShowsTheDeadlineBeforeTheLeaseEnds"},
				{"test/belief", "TestNoCandidateBelievesInAnEndedLease"},
				{client, beliefs},
			},
		},
		{
			Name: "the margin forgotten: a leader stops when the lease ends, and takes its time",
			Had:  "client-go's users, whose way to the end took longer than 5 s (cilium#42920)",
			File: "leadership/deadline.go", Quick: true,
			Old: `return sent + slow(slow(waited)+left) - margin`,
			New: `return sent + slow(slow(waited)+left) - 0*margin`,
			By:  []Tests{{inRules, "TestADeadlineCountsFromBeforeTheRequestAndAllowsForDriftAndForStopping"}},
		},
		{
			Name: "an unknown outcome extends the lease: a renewal that was not answered counts as done",
			Had:  "whoever sees the reply lost and the request arrived",
			File: keep, Quick: true,
			Old: `		return sent
	}
	return k.failed(err)`,
			New: `		return sent
	}
	if errors.Is(err, leadership.OutcomeUnknown) {
		k.extend(sent, leadership.Lease{ExpiresIn: k.duration, LeaseDuration: k.duration})
	}
	return k.failed(err)`,
			By: []Tests{{client, "TestOnlyAnAnswerMovesTheDeadlineOn"}, {client, beliefs}},
		},
		{
			Name: "a renewal that is heard of after the deadline revives belief",
			Had:  "etcd's clients, whose session goes on when the connection does",
			File: belief, Quick: true,
			Old: `if b.Left(now) > 0 {`,
			New: `if !b.over {`,
			By:  []Tests{{inRules, "TestALateAnswerRevivesNothingThoughNobodyHasAskedSinceTheDeadline"}},
		},
		{
			Name: "the answer to an older renewal, heard after that to a newer one, moves the deadline back",
			Had:  "whoever takes the last word for the newest",
			File: belief, Quick: true,
			Old: `b.deadline = max(b.deadline, b.until(sent, 0, answer))`,
			New: `b.deadline = b.until(sent, 0, answer)`,
			By:  []Tests{{inRules, "TestTheAnswerToAnOlderRenewalDoesNotMoveTheDeadlineBack"}},
		},
		{
			Name: "the time in line counts though the request had not been sent for so long",
			Had:  "whoever trusts a number of the network",
			File: belief, Quick: true,
			Old: `b.until(sent, min(g.Waited, now-sent), g.Lease)`,
			New: `b.until(sent, g.Waited, g.Lease)`,
			By:  []Tests{{inRules, "TestNobodyHasStoodInLineForLongerThanSinceTheyAsked"}},
		},
		{
			Name: "whoever asks whether it leads is answered by a timer that has not fired yet, and not by the clock",
			Had:  "all that keep leadership in a boolean",
			File: lease, Quick: true,
			Old: `func (l *Lease) Valid() bool { return l.Remaining() > 0 }`,
			New: `func (l *Lease) Valid() bool { return l.ctx.Err() == nil }`,
			By: []Tests{
				{client, "TestLeaseIsInvalidRightAfterASuspend"},
				{client, "TestLeaseIsInvalidRightAfterAStop"},
			},
		},
		{
			Name: "the leader's clock stops while the machine is suspended, and it wakes believing that it leads",
			Had:  "every Go program that trusts time.Since (golang/go#24595)",
			File: "leadership/boottime/boottime_linux.go", Quick: true,
			Old: `unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)`,
			New: `unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)`,
			By:  []Tests{{"leadership/boottime", "TestTheClockCountsTheTimeOfASuspension"}},
		},
		{
			Name: "a leader that is told that its lease is lost goes on until its deadline",
			Had:  "whoever takes every error of a renewal for a passing one",
			File: keep,
			Old:  `case errors.Is(err, leadership.LeaseLost), errors.Is(err, leadership.ElectionDeleted):`,
			New:  `case errors.Is(err, leadership.ElectionDeleted):`,
			By:   []Tests{{client, "TestALeaderThatIsOverruledStopsAtItsNextRenewal"}},
		},
		{
			Name: "a campaign succeeds with a lease that was over when it was heard of",
			Had:  "etcd, whose Campaign returns well after the session died (etcd#19597)",
			File: campaign,
			Old: `	left := l.Remaining()
	if left == 0 {`,
			New: `	left := l.Remaining()
	if left < 0 {`,
			By: []Tests{{client, "TestReplyAfterTheDeadlineDoesNotMakeALeader|TestGrantThatArrivesTooLateIsAnErrorAndIsReleased"}},
		},
		{
			Name: "acquire retried without its key: each try is somebody else, and waits for the lease of the one before",
			Had:  "jetcd (Jepsen 2024), which sent again what must not be done twice",
			File: campaign, Quick: true,
			Old: `k.request.Wait, k.sent = k.wait, k.clock()`,
			New: `k.request.Wait, k.sent, k.request.Key = k.wait, k.clock(), new(leadership.NewKey())`,
			By:  []Tests{{client, "TestACampaignWhoseRepliesAreLostIsGrantedOneLease"}},
		},
		{
			Name: "a campaign that is given up leaves its lease behind, and everybody waits for its end",
			Had:  "client-go, which does not release on cancel (kubernetes#131867)",
			File: campaign,
			Old: `	case errors.Is(err, leadership.OutcomeUnknown):
		k.unknown = true`,
			New: `	case errors.Is(err, leadership.OutcomeUnknown):
		k.unknown = false`,
			By: []Tests{{client, "TestCancelledCampaignLeavesNoLease|TestGrantThatArrivesTooLateIsAnErrorAndIsReleased"}},
		},
		{
			Name: "a change whose answer was lost is reported as not done",
			Had:  "FoundationDB's layers, until simulation showed them the unknown commit",
			File: call,
			Old: `	if mutates {
		return leadership.OutcomeUnknown
	}`,
			New: `	if mutates && leadership.OutcomeUnknown == "" {
		return leadership.OutcomeUnknown
	}`,
			By: []Tests{{client, "TestAfterALostReplyTheOutcomeOfAChangeIsUnknown|TestAfterHalfAReplyTheOutcomeOfAChangeIsUnknown"}},
		},
		{
			Name: "the lease is given back before the work has stopped",
			Had:  "client-go's ReleaseOnCancel with a slow shutdown (cilium#42920)",
			File: client + "/run.go", Quick: true,
			Old: `	return lead(l.Context(), l)
}`,
			New: `	done := make(chan error, 1)
	go func() { done <- lead(l.Context(), l) }()
	select {
	case err := <-done:
		return err
	case <-l.ctx.Done():
		return context.Cause(l.ctx)
	}
}`,
			By: []Tests{{client, "TestALeaseIsGivenBackOnlyAfterTheFunctionHasReturned"}},
		},
		{
			Name: "the leader believes more of a lease than a lease can be, because a reply says so",
			Had:  "whoever trusts a number of the network",
			File: belief, Quick: true,
			Old: `min(answer.ExpiresIn, answer.LeaseDuration, MaxLeaseDuration)`,
			New: `max(answer.ExpiresIn, 0)`,
			By:  []Tests{{client, "TestImpossibleLeaseInARenewalIsNotBelieved"}},
		},
		{
			Name: "a reply about another lease is taken for the answer",
			Had:  "proxies that answer from another request's cache",
			File: client + "/calls.go",
			Old:  `err = expected{election: r.Election, held: true, leader: r.CandidateID}.match(lease)`,
			New:  `err = expected{election: lease.Election, held: true, leader: lease.LeaderID}.match(lease)`,
			By:   []Tests{{client, "TestALeaseOfAnotherRequestIsNotBelieved"}},
		},
		{
			Name: "a watch that is connected again begins with what comes from then on",
			Had:  "whoever forgets the Last-Event-ID",
			File: client + "/watch.go",
			Old:  `wire.LastEventIDHeader: w.cursor}`,
			New:  `wire.LastEventIDHeader: w.request.After}`,
			By:   []Tests{{client, "TestWatchOfOneResumesAfterEveryFailure|TestWatchOfAllResumesAfterEveryFailure"}},
		},
		{
			Name: "the guard of a command does not kill it",
			Had:  "etcdctl lock, which never does, and consul lock, which does 90 s late (consul#9788)",
			File: leash + "/guardian.go",
			Old: `	g.end(log)
`,
			New: `	_ = g
`,
			By: []Tests{{leash, "TestGuardWithoutACallerKillsAtOnce"}},
		},
		{
			Name: "a guard that was stopped kills by the deadline that it knew, and not by what it was told since",
			Had:  "whoever reads the clock before the mail",
			File: leash + "/guardian.go", Quick: true,
			Old: `		readable, err := b.wait(deadline)
		switch {
		case err != nil:
			return order{}, err`,
			New: `		readable, err := b.wait(deadline)
		switch {
		case boottime.Now() >= deadline:
			return order{}, os.ErrDeadlineExceeded
		case err != nil:
			return order{}, err`,
			By: []Tests{{leash, "TestStoppedGuardReadsOrdersBeforeItKills"}},
		},
		{
			Name: "a command begins though whoever started it has died meanwhile, and nobody holds its leash",
			Had:  "PR_SET_PDEATHSIG, which sends nothing for a parent that is dead already",
			File: leash + "/gate.go", Quick: true,
			Old: `if err := dieWithParent(); err != nil || os.Getppid() != caller {`,
			New: `if err := dieWithParent(); err != nil || caller == 0 {`,
			By:  []Tests{{leash, "TestCommandNeverBeginsIfTheCallerDiedAfterItsMessage"}},
		},
		{
			Name: "a fence lets in a token that is lower than one it has seen",
			Had:  "resources that compare a token with the one before, and not with the highest",
			File: fence + "/mark.go", Quick: true,
			Old: `case w.Token < m.Token:`,
			New: `case w.Token < m.Token-1:`,
			By:  []Tests{{fence, "TestALowerTokenIsRefusedAndAHigherOneRaisesTheMark"}},
		},
		{
			Name: "a fence is looked at first and written behind later, with time for a successor between",
			Had:  "whoever checks a token in one transaction and writes in another",
			File: fence + "/guard.go", Quick: true,
			Old: `	g.marks[resource] = m
	return write()`,
			New: `	g.marks[resource] = m
	g.mu.Unlock()
	defer g.mu.Lock()
	return write()`,
			By: []Tests{{fence, "TestALaterLeaderWaitsForTheWriteThatIsUnderWay"}},
		},
	}
}

package mutants

// waiting are bugs in the line in front of an election.
func waiting() []Mutant {
	const (
		queue   = "leadership/instance/internal/line"
		runner  = queue + "/runner.go"
		line    = queue
		attempt = line + "/attempt.go"
	)
	return []Mutant{
		{
			Name: "a waiter is not looked at again: it is asked for, and granted the lease, after it has gone",
			Had:  "etcd, which told a waiter that it had the lock without another look at its lease (etcd#11456)",
			File: runner, Quick: true,
			Old: `bounded, cancel := context.WithTimeout(ctx, attemptTimeout)`,
			New: `bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), attemptTimeout)`,
			By:  []Tests{{queue, "TestWhoeverGoesDuringItsAttemptIsNotGrantedAndTheNextIsAskedForAtOnce"}},
		},
		{
			Name: "a lease is granted under a key of the queue's own to a caller who has gone, and nobody can give it back",
			Had:  "default leases that are made for a caller, and never end (dotnet-etcd#321)",
			File: queue + "/queue.go", Quick: true,
			Old: `if err == nil && r.Key == nil && ctx.Err() != nil {`,
			New: `if err == nil && r.Key == nil && r.Wait < 0 {`,
			By:  []Tests{{queue, "TestALeaseThatNobodyWasToldTheKeyOfIsReleasedAtOnce"}},
		},
		{
			Name: "a lease is granted under a key of the queue's own by an attempt whose reply was lost, and nobody looks for it",
			Had:  "whoever forgets a lock whose creation timed out",
			File: line + "/line.go",
			Old: `	if p.unknown == nil {
		return
	}`,
			New: `	if p.unknown == nil || p.drawn {
		return
	}`,
			By: []Tests{{queue, "TestALeaseOfAnUnknownAttemptIsReleasedIfNobodyWasToldItsKey"}},
		},
		{
			Name: "an attempt whose outcome is unknown is not repeated with its own key",
			Had:  "jetcd (Jepsen 2024), which sent again what must not be done twice",
			File: attempt, Quick: true,
			Old: `		l.next = never
`,
			New: `		l.next = never
		if p.unknown != nil {
			p.request.Key = new(l.common.Key())
		}
`,
			By: []Tests{{queue, "TestAnAttemptWhoseOutcomeIsUnknownIsRepeatedWithTheSameKey"}},
		},
		{
			Name: "whoever joined a call that was under way counts the lease from its own call, which came later",
			Had:  "whoever lets requests share an answer",
			File: line + "/answer.go", Quick: true,
			Old: `grant.Lease = aged(grant.Lease, -grant.Waited)`,
			New: `grant.Lease = aged(grant.Lease, 0)`,
			By:  []Tests{{queue, "TestACallThatComesDuringTheAttemptCountsTheLeaseFromBefore"}},
		},
		{
			Name: "while events may be missed the head waits for them all the same, for ever",
			Had:  "controller-runtime and others, stuck after the network came back (controller-runtime#3298)",
			File: attempt,
			Old:  `return min(l.next, l.poll)`,
			New:  `return min(l.next, never)`,
			By:   []Tests{{queue, "TestWhileEventsMayBeMissedTheHeadAsksFromTimeToTime"}},
		},
		{
			Name: "a release that is heard of does not wake the head",
			Had:  "whoever waits for the end of a lease that has been given back (opentelemetry-operator#3058)",
			File: line + "/news.go", Quick: true,
			Old: `	case changed, e.Type == leadership.EventDeleted:`,
			New: `	case e.Type == leadership.EventDeleted:`,
			By:  []Tests{{queue, "TestAfterAReleaseElsewhereTheNextLeadsWithinMilliseconds"}},
		},
		{
			Name: "each who comes to the line asks the store",
			Had:  "the thundering herd; Chubby's 3,000 processes brought its master down",
			File: line + "/line.go",
			Old: `	c.place.callers = append(c.place.callers, c)
	l.callers++`,
			New: `	c.place.callers = append(c.place.callers, c)
	l.callers++
	l.next = min(l.next, now)
	l.wake()`,
			By: []Tests{{queue, "TestTenThousandWhoWaitCostOneAttemptForEachTakeover"}},
		},
	}
}

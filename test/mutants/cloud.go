package mutants

// cloud are bugs in the stores whose tests need emulators.
func cloud() []Mutant {
	const (
		firestore = "store/firestore"
		spanner   = "store/spanner"
	)
	return []Mutant{
		{
			Name: "Firestore: a renewal is not guarded by the version that is known, and overwrites what came since",
			Had:  "whoever writes a document without a precondition",
			File: firestore + "/renew.go", Emulators: true,
			Old: `		CurrentDocument: b.held.asSeen(),`,
			New: `		CurrentDocument: present(),`,
			By:  []Tests{{firestore, "TestAGuardThatFailedIsNotTriedAgain"}},
		},
		{
			Name: "Firestore: a late heartbeat counts from its commit when the lease is read again",
			Had:  "whoever takes the time of the last write for the start",
			File: "leadership/record.go", Emulators: true,
			Old: `if due.IsZero() || committed.Before(due) {`,
			New: `if due.IsZero() || !committed.IsZero() {`,
			By:  []Tests{{firestore, "TestALateRenewalDoesNotReviveTheLease"}},
		},
		{
			Name: "Firestore: a commit whose reply was lost is reported as not done",
			Had:  "google-cloud-dotnet (#12669): after UNAVAILABLE the commit may have been done",
			File: firestore + "/errors.go", Emulators: true,
			Old: `		return leadership.OutcomeUnknown
	}
	return leadership.StoreUnavailable // Firestore`,
			New: `		return leadership.StoreUnavailable
	}
	return leadership.StoreUnavailable // Firestore`,
			By: []Tests{{firestore, "TestAChangeWhoseReplyIsLostIsUnknownAndAskingAgainFindsOut"}},
		},
		{
			Name: "Spanner: a captured result is not reset when the transaction runs again, and a lease that was lost meanwhile is renewed",
			Had:  "golang/oscar, whose lock was once a held one for that",
			File: spanner + "/renew.go", Emulators: true,
			Old: `b = beats{codec: s.codec} // the client may`,
			New: `b.codec = s.codec // the client may`,
			By:  []Tests{{spanner, "TestALeaseThatIsReleasedBetweenTwoRunsOfARenewalIsNotRenewed"}},
		},
		{
			Name: "Spanner: a commit that was sent and not answered is taken for refused",
			Had:  "whoever looks at the last error of a client that tries again by itself",
			File: spanner + "/outcome.go", Emulators: true,
			Old: `	if err != nil && !settles(status.Code(err)) {
		f.unknown.Store(true)
	}`,
			New: `	if err != nil && !settles(status.Code(err)) {
		f.unknown.Store(false)
	}`,
			By: []Tests{{spanner, "TestAFailedCommitIsRefusedOrUnknownOrDoneAgain"}},
		},
		{
			Name: "Spanner: a renewal is matched by election and token, and not by the key",
			Had:  "spindle, whose heartbeat names the lock and not its holder",
			File: spanner + "/renew.go", Emulators: true,
			Old: `AND r.leader_id = l.leader_id AND r.fencing_token = l.fencing_token AND r.key_hash = l.key_hash),`,
			New: `AND r.leader_id = l.leader_id AND r.fencing_token = l.fencing_token),`,
			By:  []Tests{{spanner, "TestALeaseIsRenewedOnlyIfEveryPartOfItMatches"}},
		},
	}
}

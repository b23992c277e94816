package mutants

// stores are bugs in the stores that need no emulators, and in the moves between stores.
func stores() []Mutant {
	const (
		bolt    = "store/bolt"
		file    = bolt + "/file.go"
		writer  = bolt + "/writer.go"
		applied = bolt + "/transaction.go"
	)
	return []Mutant{
		{
			Name: "acknowledged before it is synced: a commit is not waited for to reach the disk",
			Had:  "NATS (Jepsen 2025), which synced every two minutes and lost 14 % of what it had acknowledged",
			File: file, Quick: true,
			Old: `NoFreelistSync:  true, // it is rebuilt`,
			New: `NoSync: true, NoFreelistSync: true, // it is rebuilt`,
			By:  []Tests{{bolt, "TestEveryCommitIsSynced"}},
		},
		{
			Name: "a read tells what the disk does not have yet, and a power cut takes back",
			Had:  "bbolt's own readers, who see a commit before it is synced",
			File: bolt + "/horizon.go", Quick: true,
			Old: `		if durable {
			return nil
		}`,
			New: `		if durable || id > 0 {
			return nil
		}`,
			By: []Tests{{bolt, "TestAReadTellsNothingThatAPowerCutCouldStillUndo"}},
		},
		{
			Name: "after an fsync that failed the store goes on writing",
			Had:  "PostgreSQL and most others, until fsyncgate",
			File: writer, Quick: true,
			Old: `w.failed.Store(&dead)`,
			New: `_ = &dead`,
			By:  []Tests{{bolt, "TestAfterACommitThatFailedNothingIsReadOrWritten"}},
		},
		{
			Name: "checksums are not looked at: a bit that has flipped on the disk is believed",
			Had:  "NATS (Jepsen 2025), where one bit cost half of all messages",
			File: bolt + "/encode.go",
			Old:  `if crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value) != binary.BigEndian.Uint32(sealed) {`,
			New:  `if sum := crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value); sum == 0 && binary.BigEndian.Uint32(sealed) != 0 {`,
			By:   []Tests{{bolt, "TestAFlippedBitIsNoticed"}},
		},
		{
			Name: "the boot's id is ignored: on another machine, which has run for longer, every lease is over at once",
			Had:  "whoever keeps a monotonic time on a disk, and moves the disk",
			File: file, Quick: true,
			Old: `if machine.BootID == "" || string(boot) != machine.BootID {`,
			New: `if machine.BootID == "" || len(boot) == 0 {`,
			By:  []Tests{{bolt, "TestAfterAnotherBootNobodyIsGrantedALeaseBeforeAFullLeaseHasPassed"}},
		},
		{
			Name: "a clock that went back within one boot, as a restored machine's does, is believed",
			Had:  "whoever restores virtual machines from snapshots",
			File: file, Quick: true,
			Old: `return !clock.now().Before(last), nil`,
			New: `return !last.IsZero(), nil`,
			By:  []Tests{{bolt, "TestAClockThatWentBackWithinABootCountsAsAnotherBoot"}},
		},
		{
			Name: "the file is served though another stands in its place, which a second process may serve",
			Had:  "whoever locks an open file and not its name",
			File: writer,
			Old:  `if err == nil && !os.SameFile(now, w.file) {`,
			New:  `if err == nil && now.Size() == 0 {`,
			By:   []Tests{{bolt, "TestAFileThatWasRemovedIsServedNoLonger"}},
		},
		{
			Name: "what the writer had begun when its caller gave up is reported as not done",
			Had:  "etcd's and FoundationDB's users, who take a timeout for a failure",
			File: writer,
			Old:  `return fmt.Errorf("bolt: %w: %w", leadership.OutcomeUnknown, ctx.Err())`,
			New:  `return fmt.Errorf("bolt: %w: %w", leadership.StoreUnavailable, ctx.Err())`,
			By:   []Tests{{bolt, "TestAChangeThatWasBegunWhenItsCallerGaveUpIsUnknownAndIsDone"}, {bolt, "TestARenewalWhoseCallerHasGivenUpIsUnknownAndStaysSo"}},
		},
		{
			Name: "a record is not verified when it is loaded: a damaged one grants",
			Had:  "whoever takes what can be decoded for what is right",
			File: applied,
			Old:  `if err := leadership.Verify(snap, k.newest); err != nil {`,
			New:  `if err := leadership.Verify(snap, k.newest); err != nil && k.record.Revision < 0 {`,
			By:   []Tests{{bolt, "TestTheStoreKeepsItsContract"}},
		},
		{
			Name: "an event is lost in the outbox: of two in one change only the first is put there",
			Had:  "outboxes that hold one message for each transaction",
			File: applied,
			Old: `		t.put(outboxBucket, key, nil)
`,
			New: `		if i == 0 {
			t.put(outboxBucket, key, nil)
		}
`,
			By: []Tests{{bolt, "TestTheStoreKeepsItsContract"}},
		},
		{
			Name: "the store writes though the decision was refused",
			Had:  "whoever looks at an error after the write",
			File: "store/memory/memory.go", Quick: true,
			Old: `	if err != nil || ch.Empty() {
		return snap, err
	}`,
			New: `	if ch.Empty() {
		return snap, err
	}`,
			By: []Tests{{inMemory, "TestTheStoreKeepsItsContract"}},
		},
		{
			Name: "the newest event of an election is forgotten with the old ones, and with it the witness of its token",
			Had:  "whoever compacts by age alone",
			File: "store/memory/memory.go",
			Old:  `for len(events) > 1 && d.history.Over(events[0].At, now) {`,
			New:  `for len(events) > 0 && d.history.Over(events[0].At, now) {`,
			By:   []Tests{{inMemory, "TestTheStoreKeepsItsContract"}},
		},
		{
			Name: "a move does not look whether the old store has changed meanwhile",
			Had:  "whoever copies first and switches off later",
			File: "store/move.go",
			Old: `		if errors.Is(err, errChanged) {
			continue
		}
`,
			New: `		if errors.Is(err, errChanged) {
			return passage(old, false), nil
		}
`,
			By: []Tests{
				{"store", "TestWheneverAMoveComesNoTokenGoesBackAndNobodyLeadsTooEarly|TestALeaseThatIsRenewedDuringAMoveIsWaitedForToItsEnd"},
			},
		},
	}
}

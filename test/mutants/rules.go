package mutants

// Folders of tests.
const (
	inRules  = "leadership"
	inMemory = "store/memory"
)

// rules are bugs in what decides. Stores, simulators and searches all run these functions, so that each of them may be asked.
func rules() []Mutant {
	const (
		acquiring = "leadership/rules.go"
		record    = "leadership/record.go"
		operator  = "leadership/operator.go"
		transfer  = "leadership/transfer.go"
	)
	return []Mutant{
		{
			Name: "> instead of >=: a lease still lasts at the very instant of its end",
			Had:  "whoever has compared two instants",
			File: record, Quick: true,
			Old: `s.Record.LeaderID != "" && s.Now.Before(s.Record.LeaseEnd())`,
			New: `s.Record.LeaderID != "" && !s.Now.After(s.Record.LeaseEnd())`,
			By:  []Tests{{inRules, "TestALeaseEndsAtItsEndForItsLeaderAndAGuardLaterForOthers"}},
		},
		{
			Name: "the wall clock in the core: a process compares the end of a lease with its own time",
			Had:  "client-go (kubernetes#125761), ShedLock (#639), Vault on Spanner",
			File: record, Quick: true,
			Old: `s.Record.LeaderID != "" && s.Now.Before(s.Record.LeaseEnd())`,
			New: `s.Record.LeaderID != "" && time.Now().Before(s.Record.LeaseEnd())`,
			By:  []Tests{{inRules, "TestALeaseEndsAtItsEndForItsLeaderAndAGuardLaterForOthers"}},
		},
		{
			Name: "the guard forgotten: the next lease begins at the end of the last by the clock of another server of the store",
			Had:  "whoever takes two servers' clocks for one",
			File: record, Quick: true,
			Old: `		if left := end.Add(s.Guard).Sub(s.Now); left > 0 {
			return left, ReasonHeld
		}
		r = r.vacated(end, r.Policy.LockDelay+s.Guard)`,
			New: `		if left := end.Sub(s.Now); left > 0 {
			return left, ReasonHeld
		}
		r = r.vacated(end, r.Policy.LockDelay)`,
			By: []Tests{{inRules, "TestALeaseEndsAtItsEndForItsLeaderAndAGuardLaterForOthers"}},
		},
		{
			Name: "the token kept on re-acquire: a candidate that leads again has the token of its last term",
			Had:  "Consul, whose LockIndex stays when the same session locks again",
			File: acquiring, Quick: true,
			Old: `	ch := s.change()
	if r.LeaderID != "" {
		ch.expire(s.Guard)
	}
	ch.grant(c, s.Now)`,
			New: `	ch := s.change()
	if r.LeaderID != "" {
		ch.expire(s.Guard)
		if r.LeaderID == c.CandidateID {
			ch.Record.Token--
		}
	}
	ch.grant(c, s.Now)`,
			By: []Tests{{inRules, "FuzzRules"}, {inMemory, "TestTheProtocolHoldsOnMemory"}},
		},
		{
			Name: "acquire by name alone: another incarnation of the leader is taken for it, and both lead with one token",
			Had:  "whoever tells candidates apart by the name of their host (newrelic/node-newrelic#3093)",
			File: acquiring,
			Old:  `if s.Live() && r.LeaderID == c.CandidateID && r.KeyHash.Equal(c.KeyHash) {`,
			New:  `if s.Live() && r.LeaderID == c.CandidateID {`,
			By:   []Tests{{inMemory, "TestTheProtocolHoldsOnMemory"}},
		},
		{
			Name: "an acquire with the same key revives a lease that has ended",
			Had:  "etcd, whose leases begin anew when their keeper does (etcd#9395)",
			File: acquiring, Quick: true,
			Old: `if s.Live() && r.LeaderID == c.CandidateID && r.KeyHash.Equal(c.KeyHash) {`,
			New: `if r.LeaderID == c.CandidateID && r.KeyHash.Equal(c.KeyHash) {`,
			By:  []Tests{{inMemory, "TestTheStoreKeepsItsContract|TestTheProtocolHoldsOnMemory"}},
		},
		{
			Name: "an acquire by the leader makes its lease shorter, though the reply may be lost and the leader believe in the longer one",
			Had:  "whoever lets both sides of a promise be changed by one of them",
			File: acquiring,
			Old:  `longer := cmd.LeaseDuration > r.LeaseDuration`,
			New:  `longer := cmd.LeaseDuration > 0 && cmd.LeaseDuration != r.LeaseDuration`,
			By:   []Tests{{inMemory, "TestTheProtocolHoldsOnMemory"}},
		},
		{
			Name: "a renewal keyed by name alone feeds the lease of the successor",
			Had:  "spindle, whose heartbeat names the lock and not its holder",
			File: acquiring, Quick: true,
			Old: `if !c.holds(s.Record) || !s.Live() {`,
			New: `if !s.Live() {`,
			By:  []Tests{{inMemory, "TestTheStoreKeepsItsContract"}},
		},
		{
			Name: "a renewal without the key: whoever has read the name and the token can keep the lease",
			Had:  "services that take an id for a secret",
			File: acquiring, Quick: true,
			Old: `r.LeaderID != "" && r.Token == c.Token && r.LeaderID == c.CandidateID && r.KeyHash.Equal(c.KeyHash)`,
			New: `r.LeaderID != "" && r.Token == c.Token && r.LeaderID == c.CandidateID`,
			By:  []Tests{{inMemory, "TestTheStoreKeepsItsContract"}},
		},
		{
			Name: "renew revives an expired lease, as long as nobody has taken it",
			Had:  "whoever renews by who is written there, and not by the time",
			File: acquiring, Quick: true,
			Old: `if !c.holds(s.Record) || !s.Live() {`,
			New: `if !c.holds(s.Record) {`,
			By:  []Tests{{inMemory, "TestTheStoreKeepsItsContract"}},
		},
		{
			Name: "release without the handle: the key is not compared",
			Had:  "etcd (etcd#22082) and Vault (vault#5081), where a stale unlock hits a newer grant",
			File: acquiring, Quick: true,
			Old: `case c.Token > r.Token, c.Token == r.Token && r.LeaderID != "" && !c.holds(r):`,
			New: `case c.Token > r.Token, c.Token == r.Token && r.LeaderID != "" && r.LeaderID != c.CandidateID:`,
			By:  []Tests{{inMemory, "TestTheProtocolHoldsOnMemory"}},
		},
		{
			Name: "a late release hits the successor: an old token ends the lease of a newer one",
			Had:  "Azure Event Hubs (azure-event-hubs-dotnet#115), client-go since v0.34",
			File: acquiring,
			Old:  `case c.Token < r.Token || r.LeaderID == "":`,
			New:  `case r.LeaderID == "":`,
			By:   []Tests{{inMemory, "TestTheProtocolHoldsOnMemory"}},
		},
		{
			Name: "a release that comes after the end counts as one, and the lock delay is skipped",
			Had:  "whoever trusts that a leader which says that it has stopped did so in time",
			File: acquiring, Quick: true,
			Old: `	if s.Live() {
		ch.vacate(EventReleased, s.Now, 0)
	} else {`,
			New: `	if s.Live() || r.LeaderID != "" {
		ch.vacate(EventReleased, s.Now, 0)
	} else {`,
			By: []Tests{{inRules, "TestALeaseThatEndedInAnyWayButByItsReleaseIsFollowedAGuardLater"}},
		},
		{
			Name: "the lock delay forgotten: a leader that died is followed while its last writes are still under way",
			Had:  "services without what Chubby and Consul have for it",
			File: acquiring, Quick: true,
			Old: `c.vacate(EventExpired, c.Record.LeaseEnd(), c.Record.Policy.LockDelay+guard)`,
			New: `c.vacate(EventExpired, c.Record.LeaseEnd(), guard)`,
			By:  []Tests{{inMemory, "TestTheProtocolHoldsOnMemory"}},
		},
		{
			Name: "one number for two events: the sequence is reused where one change has several",
			Had:  "whoever numbers transactions and not what happened in them",
			File: acquiring, Quick: true,
			Old: `	c.Record.Revision++
	c.Events = append(c.Events, Event{`,
			New: `	if len(c.Events) == 0 {
		c.Record.Revision++
	}
	c.Events = append(c.Events, Event{`,
			By: []Tests{{inRules, "FuzzRules"}, {inMemory, "TestTheStoreKeepsItsContract"}},
		},
		{
			Name: "a stale token passes the check, if only it was granted once",
			Had:  "Redlock, whose random tokens have no order",
			File: acquiring,
			Old:  `case token == r.Token && s.Live():`,
			New:  `case token <= r.Token && s.Live():`,
			By:   []Tests{{inMemory, "TestTheProtocolHoldsOnMemory"}},
		},
		{
			Name: "a token passes the check though its lease has ended",
			Had:  "whoever looks at what was written last, and not at the time",
			File: acquiring,
			Old:  `case token == r.Token && s.Live():`,
			New:  `case token == r.Token && r.LeaderID != "":`,
			By:   []Tests{{inMemory, "TestTheProtocolHoldsOnMemory"}},
		},
		{
			Name: "taking back a late heartbeat ends a lease that was renewed again since, and its leader was told so",
			Had:  "compensation that does not look what it compensates",
			File: acquiring, Quick: true,
			Old: `if r.LeaderID == "" || r.Token != token || !r.HeartbeatAt.Equal(late) {`,
			New: `if r.LeaderID == "" || r.Token != token {`,
			By: []Tests{
				{inRules, "TestALateRenewalThatWasFollowedByAnotherIsNotTakenBack"},
				{inRules, "TestAHeartbeatThatCameTooLateIsTakenBackUnlessSomethingHappenedSince"},
			},
		},
		{
			Name: "the token reset on recreate: an election that comes back counts from 0",
			Had:  "synapse-ce (#406), whose fence began anew with the lock",
			File: operator, Quick: true,
			Old: `event = EventRecreated // token, revision and a lock that still runs stay`,
			New: `event, ch.Record.Token = EventRecreated, 0`,
			By:  []Tests{{inRules, "FuzzRules"}, {inMemory, "TestTheProtocolHoldsOnMemory"}},
		},
		{
			Name: "the token deleted with its lock: a lease that ends takes the token with it",
			Had:  "golang/oscar, which deletes the lock's document",
			File: record, Quick: true,
			Old: `r.EndedAt, r.LockFor = endedAt, lockFor`,
			New: `r.EndedAt, r.LockFor, r.Token = endedAt, lockFor, 0`,
			By:  []Tests{{inRules, "FuzzRules"}, {inMemory, "TestTheStoreKeepsItsContract"}},
		},
		{
			Name: "a forced delete frees the election at once, while the leader still believes",
			Had:  "terraform force-unlock (terraform#16652) and all that break locks by hand",
			File: operator, Quick: true,
			Old: `ch.vacate(EventDeleted, s.Now, r.LeaseEnd().Sub(s.Now)+r.Policy.LockDelay+s.Guard)`,
			New: `ch.vacate(EventDeleted, s.Now, 0)`,
			By:  []Tests{{inMemory, "TestTheProtocolHoldsOnMemory"}},
		},
		{
			Name: "a record is trusted though its history knows a later token",
			Had:  "whoever restores a backup and starts the servers",
			File: record, Quick: true,
			Old: `case newest.Token != r.Token:`,
			New: `case newest.Token < r.Token:`,
			By:  []Tests{{inRules, "TestVerifyRefusesWhatCannotBe"}},
		},
		{
			Name: "an election that is moved to another store starts its tokens anew",
			Had:  "whoever has moved locks by a script",
			File: transfer, Quick: true,
			Old: `ch.Record.Token, ch.Record.Policy, ch.Record.Deleted = from.Token, from.Policy, from.Deleted`,
			New: `ch.Record.Policy, ch.Record.Deleted = from.Policy, from.Deleted`,
			By:  []Tests{{inRules, "TestACarriedElectionGoesOnAndIsGrantedWhenTheOldLeaseIsOver"}, {inRules, "FuzzTransfer"}},
		},
		{
			Name: "an election that is moved to another store is granted there while the old lease lasts",
			Had:  "Chubby's rule, not followed: a new master waits for the longest lease that the old one may have granted",
			File: transfer, Quick: true,
			Old: `ch.lock(s.Now, locked+carrySlack)`,
			New: `ch.lock(s.Now, s.barred())`,
			By:  []Tests{{inRules, "TestACarriedElectionGoesOnAndIsGrantedWhenTheOldLeaseIsOver"}, {inRules, "FuzzTransfer"}},
		},
		{
			Name: "raising after a restore raises the revision and leaves the token",
			Had:  "whoever restores a backup and forgets what clients have seen",
			File: transfer, Quick: true,
			Old: `ch.Record.Revision, ch.Record.Token = c.Above-1, Token(c.Above)`,
			New: `ch.Record.Revision = c.Above - 1`,
			By:  []Tests{{inRules, "TestARaisedElectionIsPastEverythingAndLocked"}},
		},
	}
}

package telemetry

import (
	"slices"
	"strings"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
)

// Metric describes one metric.
type Metric struct {
	Name        string // in OpenTelemetry
	Kind        Kind
	Unit        string // a UCUM unit
	Description string
	Labels      []Label
	Buckets     []float64 // upper bounds of a histogram's buckets
}

// Prometheus returns the metric's name in Prometheus.
func (m Metric) Prometheus() string {
	name := strings.ReplaceAll(m.Name, ".", "_")
	switch m.Unit {
	case "s":
		name += "_seconds"
	case "By":
		name += "_bytes"
	}
	if m.Kind == Counter {
		name += "_total"
	}
	return name
}

// Kind says what the values of a metric mean.
type Kind string

const (
	Counter   Kind = "counter"
	Histogram Kind = "histogram"
	Gauge     Kind = "gauge"
)

// Label is an attribute of a metric, with all values that it can have; no values if these are names
// of elections, which only Metrics.ByName shows.
type Label struct {
	Key    string
	Values []string
}

const (
	nameChanges      = "regent.leadership.changes"
	nameTerm         = "regent.leadership.term.duration"
	nameTransition   = "regent.leadership.transition.duration"
	nameLimited      = "regent.leadership.terms.limited"
	namePreemptions  = "regent.leadership.preemptions"
	nameBids         = "regent.ballots.bids"
	nameBallot       = "regent.ballots.duration"
	nameHandOvers    = "regent.handovers"
	nameHandOver     = "regent.handovers.duration"
	nameHandOverGap  = "regent.handovers.gap"
	nameElections    = "regent.elections"
	nameDelegated    = "regent.elections.delegated"
	nameDepth        = "regent.elections.depth"
	nameLeaderless   = "regent.elections.leaderless"
	nameFlapping     = "regent.elections.flapping"
	nameGrants       = "regent.elections.grants"
	nameReadOnly     = "regent.elections.readonly"
	nameLowest       = "regent.elections.participation"
	nameMembers      = "regent.members"
	nameFollowed     = "regent.acknowledgements.waiting"
	namePaused       = "regent.elections.paused"
	namePausedAge    = "regent.elections.paused.age"
	nameApprovals    = "regent.approvals.waiting"
	nameApprovalsAge = "regent.approvals.waiting.age"
	nameTasks        = "regent.reported.tasks"
	nameTokens       = "regent.reported.tokens"
	nameCalls        = "regent.reported.calls"
	nameErrors       = "regent.reported.errors"
	nameSplitBrain   = "regent.leadership.splitbrain"
	nameOperations   = "regent.lease.operations"
	nameContention   = "regent.lease.contention"
	nameWaiting      = "regent.candidates.waiting"
	nameWatchers     = "regent.watchers"
	nameStore        = "regent.store.duration"
	nameBatch        = "regent.store.batch.size"
	nameLedger       = "regent.ledger.duration"
	nameLedgerSize   = "regent.ledger.size"
	nameEntries      = "regent.journal.entries"
	nameFollows      = "regent.journal.followers"
	nameLag          = "regent.journal.lag"
	nameCache        = "regent.cache.reads"
	nameUnannounced  = "regent.events.unannounced.age"
	nameRefused      = "regent.requests.refused"
	nameDisplaced    = "regent.connections.displaced"
	nameTroubles     = "regent.events.troubles"
	nameLatched      = "regent.callers.unverified"
	nameLed          = "regent.election.led"
	nameToken        = "regent.election.token"
	nameChanged      = "regent.election.changed.age"
	nameInLine       = "regent.election.waiting"
	nameFree         = "regent.election.seats.free"
	nameOmitted      = "regent.election.omitted"
)

// Catalogue returns Regent's own metrics, ordered by name. Those of HTTP are OpenTelemetry's.
func Catalogue() []Metric {
	all := slices.Concat(leaderships(), ballots(), handOvers(), elected(), named(), ledgers(), members(), reports(), calls(), parts())
	slices.SortFunc(all, func(a, b Metric) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func counter(name, unit, what string, labels ...Label) Metric {
	return Metric{Name: name, Kind: Counter, Unit: unit, Description: what, Labels: labels}
}

func gauge(name, unit, what string, labels ...Label) Metric {
	return Metric{Name: name, Kind: Gauge, Unit: unit, Description: what, Labels: labels}
}

func histogram(name, unit string, buckets []float64, what string, labels ...Label) Metric {
	return Metric{Name: name, Kind: Histogram, Unit: unit, Description: what, Labels: labels, Buckets: buckets}
}

// leaderships are counted by the instance that committed the change.
func leaderships() []Metric {
	ends := texts(leadership.EventReleased, leadership.EventExpired, leadership.EventDeposed, leadership.EventDeleted, leadership.EventUnlocked)
	return []Metric{
		counter(nameChanges, "{change}", "Changes that this instance committed. Sum over instances.", Label{"type", texts(eventTypes...)}),
		histogram(nameTerm, "s", []float64{1, 10, 60, 300, 1800, 3600, 6 * 3600, 24 * 3600, 7 * 24 * 3600},
			"How long a leader led, from its grant to the end of its lease, by how the term ended. Of a term that ended with a new epoch: until then.", Label{"end", append(ends, string(leadership.EventEpoch))}),
		histogram(nameTransition, "s", []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 45, 60, 120, 300, 600},
			"From the end of a term to the next grant, by how the term ended. A gap of more than 10 minutes counts only as long as a candidate waited.", Label{"after", ends}),
		counter(nameLimited, "{term}", "Terms that ended because a policy or an order limited them, by what did: endsBecause of the lease.", Label{"because", texts(endReasons...)}),
		counter(nameSplitBrain, "{act}", "Acts under an old fencing token, 5 s or more after a newer one was granted: renewals and other calls by a leader that believes it still leads, "+
			"or checks of what it has sent. They were refused, so that nothing that checks tokens was harmed. Each one is a leader that did "+
			"not stop in time, or a caller that keeps using an old token.", Label{"op", actingOps()}),
	}
}

// ballots are counted by the instance that committed the bid, or the grant.
func ballots() []Metric {
	return []Metric{
		counter(nameBids, "{bid}", "Bids that this instance wrote. Sum over instances. For those of one ballot, divide by the number of ballots."),
		histogram(nameBallot, "s", []float64{0.1, 0.25, 0.35, 0.5, 0.75, 1, 1.5, 2.5, 5, 10, 20, 30, 60, 300},
			"From the first bid of a ballot to its grant: the window of the policy, and as long as the best bidders are gone or the quorum is missing."),
		counter(namePreemptions, "{term}", "Terms that end because a better candidate has come. One whose candidate goes away again goes on, and is among them."),
	}
}

// handOvers are counted by the instance that committed the change.
func handOvers() []Metric {
	return []Metric{
		counter(nameHandOvers, "{handover}", "Hand-overs: started, when a leader has named its successor; completed, when a successor has taken the lease over without a "+
			"vacancy, also where an order or a better candidate has started it; timed_out, when the term ran out with a successor named; "+
			"released, when the leader has ended it without one. Sum over instances.", Label{"outcome", texts(handOverOutcomes...)}),
		histogram(nameHandOver, "s", []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 45, 60, 120, 300, 600},
			"Of hand-overs that were completed: from when the leader named its successor to the successor's grant."),
		histogram(nameHandOverGap, "s", []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
			"So, too: from when the leader had stopped to the successor's grant."),
	}
}

// ledgers are counted by the instance that answers the call.
func ledgers() []Metric {
	return []Metric{
		histogram(nameLedger, "s", []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
			"Duration of calls that put a checkpoint, or append to a journal or put its snapshot, if they succeed.", Label{"op", ledgerOps()}),
		histogram(nameLedgerSize, "By", []float64{0, 256, 1 << 10, 4 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10},
			"Size of the data in such a call: the JSON of a checkpoint or a snapshot, or of all entries of an append. 0: it names a URI.", Label{"op", ledgerOps()}),
		counter(nameEntries, "{entry}", "Entries that leaders have appended to journals through this instance. Sum over instances. One whose append was repeated counts twice."),
		gauge(nameFollows, "{follower}", "Streams of journals that are open at this instance. Sum over instances."),
		gauge(nameLag, "{entry}", "How many entries of its journal the slowest member that follows one here has not applied yet, as far as this instance knows. 0: "+
			"there is none, or it has applied all."),
	}
}

// members are gauges of an instance's knowledge of members.
func members() []Metric {
	return []Metric{
		gauge(nameMembers, "{member}", "Members of elections that wait, have joined or follow a stream at this instance. A leader that does none of these is not "+
			"among them. Sum over instances.", Label{"role", texts(roles...)}),
		gauge(nameLowest, "{part}", "The lowest participation of an election: the part of its electorate that is present or, without one, the part of its members that "+
			"follow the leader's token. 1: there is none below, as far as this instance knows."),
		gauge(nameReadOnly, "{election}", "Elections that are read-only, because too few members of the electorate have been present, as far as this instance knows."),
		gauge(nameFollowed, "{call}", "Calls on this instance that wait until enough members follow a token."),
	}
}

// elected are gauges of an instance's knowledge of all elections.
func elected() []Metric {
	return []Metric{
		gauge(nameElections, "{election}", "Elections that this instance knows, without deleted ones.", Label{"state", texts(leadership.Held, leadership.Vacant)}),
		gauge(nameLeaderless, "s", "The longest time that a wanted election has been without a leader: one for which a candidate waits here, or whose "+
			"last lease ran out and was not followed by another. Paused and halted elections, those that are not granted without an approval, "+
			"and those that have seats, unless one of these has no leader, are not among them. 0: there is none."),
		gauge(nameFlapping, "{election}", "Elections with more than 5 grants within the last 10 minutes."),
		gauge(nameGrants, "{grant}", "The most grants that one election has had within the last hour; 6 stands for all from 6 on. 0: none has had more than one."),
		gauge(namePaused, "{election}", "Elections that operators have paused or halted, as far as this instance knows. One with seats counts once, if none of them can be granted; its seats do not."),
		gauge(namePausedAge, "s", "The longest time that one of them has been so. 0: there is none."),
		gauge(nameApprovals, "{election}", "Elections whose leader has asked for an approval, or whose last term ended for want of one, and that have not got it, as far as this instance knows."),
		gauge(nameApprovalsAge, "s", "The longest time that one of them has waited. 0: there is none."),
		gauge(nameDelegated, "{election}", "Elections that a leader has delegated, as far as this instance knows."),
		gauge(nameDepth, "{level}", "How many levels the deepest of them is below an election that was not delegated, as far as this instance knows. 0: there is none."),
	}
}

// named are gauges of an instance's knowledge of the elections of --metrics-elections.
func named() []Metric {
	gaugeEach := func(name, unit, what string) Metric {
		return gauge(name, unit, what+" Only elections of --metrics-elections.", Label{Key: "election"})
	}
	return []Metric{
		gaugeEach(nameLed, "{leader}", "1 while the election has a leader, as far as this instance knows; else 0. Of one with seats, how many of them have."),
		gaugeEach(nameToken, "{token}", "The fencing token of the leader or, without one, of the last one, as far as this instance knows. Take the largest."),
		gaugeEach(nameChanged, "s", "How long the election has had its leader or, without one, has been vacant. Take the smallest."),
		gaugeEach(nameFree, "{seat}", "Seats of the election that have no leader, as far as this instance knows. Take the smallest."),
		gaugeEach(nameInLine, "{candidate}", "Candidates that wait for the election at this instance. Sum over instances."),
		gauge(nameOmitted, "{election}", "Elections of --metrics-elections that are not shown, because 200 others came first, as far as this instance knows."),
	}
}

// reports sum up the reports of leaders.
func reports() []Metric {
	reported := func(name, unit, what string) Metric {
		return counter(name, unit, what+" that leaders have reported in renewals that this instance answered. Sum over instances.")
	}
	return []Metric{
		reported(nameTasks, "{task}", "Tasks"),
		reported(nameTokens, "{token}", "Tokens of language models"),
		reported(nameCalls, "{call}", "Calls"),
		reported(nameErrors, "{call}", "Failed calls"),
	}
}

// calls are counted by the instance that answers them.
func calls() []Metric {
	var why []string
	for _, reason := range refusals {
		why = append(why, lower(reason))
	}
	return []Metric{
		counter(nameOperations, "{operation}", "Calls of agents and operators by outcome. Each part of a batch counts by itself.", Label{"op", operations()}, Label{"outcome", outcomes()}),
		counter(nameContention, "{refusal}", "Acquires that were refused because another candidate leads, or none may lead yet, or a ballot is open, or an operator or the "+
			"policy is against it; and transactions that the store repeated because of another (conflict).", Label{"reason", append(why, reasonConflict)}),
		gauge(nameWaiting, "{candidate}", "Candidates that wait on this instance."),
		gauge(nameWatchers, "{watcher}", "Streams and long polls that are open on this instance."),
		counter(nameRefused, "{request}", "Requests that were refused before the service, and messages of the topic of members that no instance on this store has sent (forged).", Label{"reason", texts(Unauthenticated, PermissionDenied, RateLimited, Quota, Forged)}),
		counter(nameDisplaced, "{connection}", "Connections that were closed to make room for others: the process may open no more files, or has no memory for more."),
		gauge(nameLatched, "{instance}", "1 while this instance refuses every call because Cloud Run's IAM was seen not to verify callers; else 0. Only with --auth platform."),
	}
}

// parts are counted by the parts of an instance.
func parts() []Metric {
	return []Metric{
		histogram(nameStore, "s", []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
			"Duration of calls of the store by outcome. Refused: a rule refused, and nothing was written.", Label{"op", storeOps()}, Label{"outcome", storeOutcomes()}),
		histogram(nameBatch, "{renewal}", []float64{1, 2, 5, 10, 25, 50, 100, 250, 500},
			"Renewals in one call of the store."),
		counter(nameCache, "{read}", "Cached reads: answered from memory (hit), read from the store (miss), or answered with another caller's read (shared).", Label{"result", []string{"hit", "miss", "shared"}}),
		gauge(nameUnannounced, "s", "Age of the oldest unannounced event when the outbox was last read. 0: there was none."),
		gauge(nameStretch, "{part}", "How far leaders are told to put their renewals off, because renewals take long: from 0, after a third of their lease, to 1, after half of it."),
		gauge(nameTroubles, "{trouble}", "Why this instance says that it is degraded, 1 for each reason that holds: it cannot announce events, it cannot hear those "+
			"of others or what they say of members, it finds events that another instance has left behind, or its access file has become invalid.", Label{"reason", texts(troubles()...)}),
	}
}

// InvalidAccess is the trouble that the access file has changed and is invalid: the previous one
// stays in force here, but no instance can start.
const InvalidAccess instance.Trouble = "access_file_invalid"

func troubles() []instance.Trouble { return append(instance.Troubles(), InvalidAccess) }

// Values of labels. Tests compare them with package leadership.
var (
	eventTypes = []leadership.EventType{
		leadership.EventAcquired, leadership.EventUpdated, leadership.EventReleased, leadership.EventExpired,
		leadership.EventConfigured, leadership.EventDeleted, leadership.EventRecreated, leadership.EventUnlocked,
		leadership.EventAssigned, leadership.EventEvicted, leadership.EventPaused, leadership.EventResumed,
		leadership.EventBanned, leadership.EventLifted, leadership.EventApproved, leadership.EventHalted,
		leadership.EventApprovalRequested, leadership.EventEpoch, leadership.EventJudged, leadership.EventTripped, leadership.EventDeposed, leadership.EventParked,
		leadership.EventHandingOver, leadership.EventGoesOn,
		leadership.EventReady, leadership.EventServing, leadership.EventYielded, leadership.EventDelegated,
	}
	endReasons = []leadership.EndReason{
		leadership.EndsMaxTerm, leadership.EndsApproval, leadership.EndsStuck, leadership.EndsEvicted, leadership.EndsDrained,
		leadership.EndsHandOver, leadership.EndsParent, leadership.EndsSeats,
	}
	// refusals are the reasons of LeaseHeld.
	refusals = []leadership.Reason{
		leadership.ReasonHeld, leadership.ReasonIncarnation, leadership.ReasonLockDelay,
		leadership.ReasonPaused, leadership.ReasonHalted, leadership.ReasonBanned, leadership.ReasonAssigned, leadership.ReasonApproval, leadership.ReasonParked, leadership.ReasonSeats,
		leadership.ReasonBallot, leadership.ReasonOutranked, leadership.ReasonQuorum, leadership.ReasonParent, leadership.ReasonWitness,
	}
	handOverOutcomes = []handOverOutcome{handOverStarted, handOverCompleted, handOverTimedOut, handOverReleased}

	roles = []leadership.Role{
		leadership.RoleLeader, leadership.RoleCandidate, leadership.RoleWitness, leadership.RoleWorker, leadership.RoleFollower,
	}
)

func storeOps() []string {
	return texts(storeGet, storeList, storeHeld, storeRetirable, storeUpdate, storeRenew, storeEvents, storeSince, storeUnannounced, storeMark,
		journalAmend, journalLook, journalSegments, journalSnapshot, journalTrim, journalLogs)
}

// actingOps returns the operations of a caller that acts under a token.
func actingOps() []string {
	verbs := []wire.Verb{
		wire.VerbRenew, wire.VerbCheckToken, wire.VerbRequestApproval, wire.VerbHandOver, wire.VerbDelegate,
		wire.VerbPutCheckpoint, wire.VerbOpenJournal, wire.VerbAppendJournal, wire.VerbSnapshotJournal,
		wire.VerbBeginEffect, wire.VerbFinishEffect, wire.VerbDecide,
	}
	all := make([]string, len(verbs))
	for i, v := range verbs {
		all[i] = v.Row().Metric
	}
	return all
}

// ledgerOps returns the operations by which leaders store data.
func ledgerOps() []string {
	return []string{wire.VerbPutCheckpoint.Row().Metric, wire.VerbAppendJournal.Row().Metric, wire.VerbSnapshotJournal.Row().Metric, wire.VerbBeginEffect.Row().Metric, wire.VerbFinishEffect.Row().Metric}
}

func storeOutcomes() []string { return texts(done, refused, unavailable, unknown) }

func outcomes() []string {
	all := []string{outcomeOK, outcomeLeft}
	for _, m := range wire.Meanings() {
		all = append(all, lower(m.Code))
	}
	slices.Sort(all)
	return all
}

func texts[T ~string](values ...T) []string {
	var all []string
	for _, v := range values {
		all = append(all, string(v))
	}
	return all
}

func lower[T ~string](v T) string { return strings.ToLower(string(v)) }

package wire

import (
	"cmp"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"regent/leadership"
)

// Verb names a call. Audit records, access files and error texts use the name.
type Verb string

// The verbs. A stream and a history share a path; the header Accept tells them apart.
const (
	VerbAcquire          Verb = "acquire"
	VerbRenew            Verb = "renew"
	VerbBatchRenew       Verb = "batchRenew"
	VerbRelease          Verb = "release"
	VerbCheckToken       Verb = "checkToken"
	VerbBatchCheckTokens Verb = "batchCheckTokens"
	VerbRead             Verb = "read"
	VerbList             Verb = "list"
	VerbEvents           Verb = "events"
	VerbWatch            Verb = "watch"
	VerbWatchAll         Verb = "watchAll"
	VerbConfigure        Verb = "configure"
	VerbDelete           Verb = "delete"
	VerbUnlock           Verb = "unlock"
	VerbAssign           Verb = "assign"
	VerbEvict            Verb = "evict"
	VerbPause            Verb = "pause"
	VerbResume           Verb = "resume"
	VerbBan              Verb = "ban"
	VerbApprove          Verb = "approve"
	VerbLift             Verb = "lift"
	VerbHalt             Verb = "halt"
	VerbUnhalt           Verb = "unhalt"
	VerbOverrides        Verb = "overrides"
	VerbJudge            Verb = "judge"
	VerbStepDown         Verb = "stepDown"
	VerbRequestApproval  Verb = "requestApproval"
	VerbExplain          Verb = "explain"
	VerbJoin             Verb = "join"
	VerbLeave            Verb = "leave"
	VerbMembers          Verb = "members"
	VerbAcknowledgement  Verb = "awaitAcknowledgement"
	VerbHandOver         Verb = "handOver"
	VerbSayReady         Verb = "sayReady"
	VerbSayServing       Verb = "sayServing"
	VerbYield            Verb = "yield"
	VerbDelegate         Verb = "delegate"
	VerbTree             Verb = "tree"
	VerbPutCheckpoint    Verb = "putCheckpoint"
	VerbCheckpoint       Verb = "checkpoint"
	VerbOpenJournal      Verb = "openJournal"
	VerbAppendJournal    Verb = "appendJournal"
	VerbJournal          Verb = "journal"
	VerbFollowJournal    Verb = "followJournal"
	VerbSnapshotJournal  Verb = "snapshotJournal"
	VerbReadSnapshot     Verb = "readSnapshot"
	VerbBeginEffect      Verb = "beginEffect"
	VerbFinishEffect     Verb = "finishEffect"
	VerbEffects          Verb = "effects"
	VerbPropose          Verb = "propose"
	VerbDecide           Verb = "decide"
	VerbProposals        Verb = "proposals"
	VerbTick             Verb = "tick"
	VerbLive             Verb = "live"
	VerbReady            Verb = "ready"
	VerbSpec             Verb = "spec"
	VerbKeySet           Verb = "keySet"
)

// Role is a set of verbs that an access file grants.
type Role string

// The roles.
const (
	RoleCandidate Role = "candidate"
	RoleObserver  Role = "observer"
	RoleVerifier  Role = "verifier"
	RoleScheduler Role = "scheduler"
	RoleHalter    Role = "halter"
	RoleOperator  Role = "operator"
	RoleAdmin     Role = "admin"
)

// Roles returns all roles.
func Roles() []Role {
	return []Role{RoleCandidate, RoleObserver, RoleVerifier, RoleScheduler, RoleHalter, RoleOperator, RoleAdmin}
}

// Cost is the limit that a call counts against.
type Cost string

// The costs. A call without one is not limited.
const (
	CostRenewal  Cost = "renewals"
	CostCampaign Cost = "campaigns"
	CostRead     Cost = "reads"
)

// Scope says which elections a call is about, which a grant must cover.
type Scope int

// The scopes.
const (
	ScopeService  Scope = iota // the service as a whole
	ScopeElection              // one election
	ScopeVisible               // each election that the caller may read
	ScopePrefix                // all elections whose names begin with a prefix
)

// Repeat says whether a caller that lost the reply may repeat the call.
type Repeat string

// The kinds of Repeat.
const (
	RepeatRead    Repeat = "reads"      // the call changes nothing
	RepeatYes     Repeat = "yes"        // the call is idempotent
	RepeatWithKey Repeat = "with a key" // the call is idempotent if the request has the caller's own key
)

// Row describes a verb to the server, the SDK, access control, limits, metrics and documentation.
type Row struct {
	Verb   Verb
	Method string
	Path   string // with {election} for a name
	Type   string // the content type of a success; "" if the header Accept does not matter
	Scope  Scope
	Roles  []Role // the roles that may call; none: every caller, even an unauthenticated one
	Cost   Cost
	Metric string // the operation that metrics count; "" for none
	Repeat Repeat
	Does   string // describes the request and the reply, in Markdown
	// Body makes an empty body, if the verb is a command with one; otherwise it is nil.
	Body func() Body

	Waits       bool // the call may wait for a change, or last long
	AsCandidate bool // the caller acts as a candidate, whose id it must be allowed to use
	Creates     bool // the call creates the election if it does not exist
	Audited     bool // the call leaves an audit record even if it is allowed
	Conditional bool // the call needs If-Match
	Large       bool // the body may be large: the time limit of the call begins when the body has arrived
	Many        bool // the answer may have thousands of records
	Parts       Verb // for a batch: the verb of each part, which is admitted by itself
}

// Changes reports whether the call may change something, so that a lost reply leaves the outcome
// unknown.
func (r Row) Changes() bool { return r.Repeat != RepeatRead }

// Allows reports whether the role may make the call.
func (r Row) Allows(role Role) bool { return slices.Contains(r.Roles, role) }

// Suffix returns the part of the path that follows the path of the election.
func (r Row) Suffix() string { return strings.TrimPrefix(r.Path, pathElection) }

// Condition reads the revision that the caller of a conditional verb has decided on; 0 for others.
func (r Row) Condition(h http.Header) (leadership.Revision, error) {
	switch {
	case !r.Conditional:
		return 0, nil
	case r.Creates:
		return ParseCondition(h)
	}
	return ParseIfMatch(h.Values("If-Match"))
}

// MaxBody returns an upper bound of the size of the body of the call, in bytes.
func (r Row) MaxBody() int64 {
	switch {
	case r.Parts != "":
		return MaxBatchBody
	case r.Large:
		return max(MaxCheckpointBody, MaxAppendBody, MaxSnapshotBody)
	}
	return MaxBody
}

// Row returns the verb's row, and a row without a verb if there is none.
func (v Verb) Row() Row {
	i := slices.IndexFunc(rows, func(r Row) bool { return r.Verb == v })
	if i < 0 {
		return Row{}
	}
	return rows[i]
}

// Verbs returns the rows of all verbs.
func Verbs() []Row { return slices.Clone(rows) }

// PathGuarded begins the paths whose callers must authenticate, if access is controlled.
const PathGuarded = "/v1/"

const pathElection = PathElections + "/{election}"

// Sets of roles with a right.
var (
	leads    = []Role{RoleCandidate}
	checks   = []Role{RoleCandidate, RoleObserver, RoleVerifier, RoleOperator, RoleAdmin}
	reads    = []Role{RoleCandidate, RoleObserver, RoleOperator, RoleAdmin}
	inherits = []Role{RoleCandidate, RoleOperator, RoleAdmin} // may read checkpoints and the like, which may be confidential
	surveys  = []Role{RoleObserver, RoleOperator, RoleAdmin}
	operates = []Role{RoleOperator, RoleAdmin}
	halts    = []Role{RoleHalter, RoleOperator, RoleAdmin}
	deletes  = []Role{RoleAdmin}
	unlocks  = []Role{RoleAdmin}
	judges   = []Role{RoleVerifier, RoleAdmin}
	ticks    = []Role{RoleScheduler, RoleOperator, RoleAdmin}
)

// The common fields of most calls of leaders and candidates, of most reads, and of most orders.
var (
	leading   = Row{Method: http.MethodPost, Roles: leads, Cost: CostRenewal, Repeat: RepeatYes, AsCandidate: true}
	reading   = Row{Method: http.MethodGet, Roles: reads, Cost: CostRead, Repeat: RepeatRead}
	operating = Row{Method: http.MethodPost, Roles: operates, Cost: CostRead, Repeat: RepeatYes, Audited: true}
)

// about returns the row of a call about one election. r.Path is the suffix of the election's path;
// other fields that r leaves out are taken from kind.
func about(kind, r Row, does string) Row {
	r.Method, r.Path, r.Type, r.Scope, r.Does = cmp.Or(r.Method, kind.Method), pathElection+r.Path, cmp.Or(r.Type, ContentType), ScopeElection, does
	if r.Roles == nil {
		r.Roles = kind.Roles
	}
	r.Cost, r.Repeat = cmp.Or(r.Cost, kind.Cost), cmp.Or(r.Repeat, kind.Repeat)
	r.AsCandidate, r.Audited = kind.AsCandidate, r.Audited || kind.Audited
	return r
}

// order returns the row of an operator's order. Its path ends with the verb's name.
func order(v Verb, does string) Row {
	return about(operating, Row{
		Verb: v, Path: ":" + string(v), Metric: string(v), Conditional: true,
		Body: func() Body { return &OrderRequest{kind: leadership.OrderKind(v)} },
	}, does)
}

// grantedTo returns the row with other roles.
func (r Row) grantedTo(roles []Role) Row {
	r.Roles = roles
	return r
}

// body lists the fields of a request's body; a "?" marks a field that may be left out.
func body[T any]() string {
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		switch name, options, _ := strings.Cut(f.Tag.Get("json"), ","); {
		case name == "": // not a field of the document
		case options == "":
			names = append(names, name)
		default:
			names = append(names, name+"?")
		}
	}
	return "Body `{" + strings.Join(names, ", ") + "}`"
}

// rows is never changed.
var rows = []Row{
	about(leading, Row{Verb: VerbAcquire, Path: Acquire, Cost: CostCampaign, Metric: "acquire", Repeat: RepeatWithKey, Waits: true, Creates: true},
		"Body `{candidateId, key?, leaseDuration?, wait?, metadata?, note?, priority?, capabilities?, load?, role?, via?, inherit?, statement?}`. The lease, or `LEASE_HELD` with who leads, the time left and the reason. With `wait` the candidate waits for its turn. With `inherit` the answer has what the last leader left behind; with `via` the lease stands on another one; with `statement` it has a signed statement."),
	about(leading, Row{Verb: VerbRenew, Path: Renew, Metric: "renew"},
		body[LeaseRequest]()+". The lease for another `leaseDuration`, or `LEASE_LOST`: stop at once."),
	about(leading, Row{Verb: VerbRelease, Path: ":release", Metric: "release", Body: func() Body { return &ReleaseRequest{} }},
		"The same body, without a report, and `{outcome?, note?}`: `done`, `failed` or `stopped`, and a line about it. Ends the lease; the lease of a successor is never touched."),
	about(reading, Row{Verb: VerbCheckToken, Method: http.MethodPost, Path: ":checkToken", Roles: checks, Metric: "check"},
		body[TokenCheck]()+". The lease and its `ETag`, or `TOKEN_STALE` with the current token. With `use` `write` also `READ_ONLY`, while too few members are present, and `NOT_READY`, until a new leader is ready."),
	{
		Verb: VerbBatchRenew, Method: http.MethodPost, Path: PathBatchRenew, Type: ContentType,
		Roles: leads, Cost: CostRenewal, Repeat: RepeatYes, Parts: VerbRenew,
		Does: "Body `{renewals: [{election, candidateId, key, fencingToken, ticket?, report?}]}`, up to 500. A result for each.",
	},
	{
		Verb: VerbBatchCheckTokens, Method: http.MethodPost, Path: PathBatchCheckTokens, Type: ContentType,
		Roles: checks, Cost: CostRead, Repeat: RepeatRead, Parts: VerbCheckToken,
		Does: "Body `{checks: [{election, fencingToken, use?}]}`, up to 500. A result for each.",
	},
	about(reading, Row{Verb: VerbRead, Waits: true},
		"The election as it was a moment ago; `maxStalenessMs` says how long at most. `?consistency=strong` asks the store, `?minRevision=` refuses anything older, `?wait=` waits for a change."),
	{
		Verb: VerbList, Method: http.MethodGet, Path: PathElections, Type: ContentType, Scope: ScopeVisible,
		Roles: surveys, Cost: CostRead, Repeat: RepeatRead, Many: true,
		Does: "A page of the elections that the caller may read: `?prefix=&pageSize=&pageToken=`.",
	},
	about(reading, Row{Verb: VerbEvents, Path: Events},
		"The history, oldest first: `?after=REVISION&limit=`."),
	about(reading, Row{Verb: VerbWatch, Path: Events, Type: StreamType, Waits: true},
		"A stream of the events of one election (`Accept: text/event-stream`), after `Last-Event-ID` or `?after=REVISION`. With `?member=ID` its reader is a follower while it is open."),
	{
		Verb: VerbWatchAll, Method: http.MethodGet, Path: PathEvents, Type: StreamType, Scope: ScopePrefix,
		Roles: surveys, Cost: CostRead, Repeat: RepeatRead, Waits: true, Many: true,
		Does: "A stream of the events of all elections: `?prefix=&after=CURSOR`, or with `?of=ELECTION` of one and its seats.",
	},
	about(operating, Row{Verb: VerbConfigure, Method: http.MethodPut, Metric: "configure", Body: func() Body { return &ConfigureRequest{} }, Creates: true, Conditional: true},
		body[ConfigureRequest]()+". Creates an election, changes its configuration, or restores a deleted one. It needs `If-Match` or, to create one, `If-None-Match: *`."),
	about(operating, Row{Verb: VerbDelete, Method: http.MethodDelete, Roles: deletes, Metric: "delete", Conditional: true},
		"Deletes an election; its token and revision go on if it is restored. `?force=true` deletes it while someone leads."),
	about(operating, Row{Verb: VerbUnlock, Path: ":unlock", Roles: unlocks, Metric: "unlock", Body: func() Body { return &UnlockRequest{} }},
		body[UnlockRequest]()+". Ends a lease or a lock at once, so that the next candidate can lead. **The one call after which two leaders may believe that they lead**; fencing tokens still tell them apart. `LEASE_HELD` says which sentence `acknowledge` has to repeat, for this lease and no other."),
	order(VerbAssign, "Body `{candidateId, for, reason, actor?}`. Until then only this candidate is granted. If another one leads, its term ends at the end already promised."),
	order(VerbEvict, "Body `{fencingToken?, ban?, candidateId?, principal?, reason, actor?}`. The present term ends at the end already promised; with `ban` its candidate, or what the next two name, is not granted for that long."),
	order(VerbPause, "Body `{for, mode?, reason, actor?}`. No candidate is granted. With `mode` `drain` the present term ends too, at the end already promised; with `freeze`, the default, its leader goes on until `drain` or `evict` ends it."),
	order(VerbResume, "Body `{reason, actor?}`. Ends the pause."),
	order(VerbBan, "Body `{candidateId or principal, for, reason, actor?}`. This candidate, in every incarnation, is not granted, or none whose id begins so (`writer-*`); or no candidate that calls as this principal."),
	order(VerbApprove, "Body `{fencingToken, for?, newEpoch?, reason, actor?}`. Approves of the present term, as its policy needs it. With `newEpoch` the same leader goes on under the next token."),
	order(VerbLift, "Body `{override, reason, actor?}`. Ends one standing order, or a cooldown, by its id."),
	// These two take a pattern in place of a name. A grant of access covers the pattern if it
	// covers all of its names.
	order(VerbHalt, "Body `{for, reason, actor?}`. `election` is a pattern: the beginning of names, and `*`. No candidate is granted any election of these names, also none that comes later; leaders go on. The halts are the overrides of election `regent.halts`, which the answer shows.").grantedTo(halts),
	order(VerbUnhalt, "Body `{reason, actor?}`. Ends the halt of that pattern."),
	about(reading, Row{Verb: VerbOverrides, Path: AllOverrides},
		"The standing orders: `{overrides: [{id, kind, candidateId?, actor, reason, since, until, untilMs}]}`."),
	about(operating, Row{Verb: VerbJudge, Path: ":judge", Roles: judges, Metric: "judge", Body: func() Body { return &JudgeRequest{} }, Conditional: true},
		body[JudgeRequest]()+", the verdict `bad` or `good`. As many bad verdicts as the policy says end the term. It needs `If-Match`, with the `ETag` of `checkToken`: a verifier may not read the election."),
	about(leading, Row{Verb: VerbStepDown, Path: ":stepDown", Metric: "stepDown", Body: func() Body { return &StepDownRequest{} }},
		body[StepDownRequest]()+". A release that says why; with `for` the candidate is not granted for that long."),
	about(leading, Row{Verb: VerbRequestApproval, Path: ":requestApproval", Metric: "requestApproval", Body: func() Body { return &ApprovalNote{} }},
		body[ApprovalNote]()+". The leader asks operators to approve; with `newEpoch`, under the next token."),
	about(reading, Row{Verb: VerbExplain, Path: Candidates + "/{candidate}" + Explain},
		"Why the candidate does not lead: `{leads, reasons: [{code, until?, untilMs?, by?, reason?, …}]}`."),
	about(leading, Row{Verb: VerbJoin, Path: Join, Cost: CostRead},
		body[JoinRequest]()+", the role `follower`, `worker` or `witness`. Makes the caller a member until `ttl` is over; repeat it to stay. Answers the election: who leads, and the token."),
	about(leading, Row{Verb: VerbLeave, Path: ":leave", Cost: CostRead},
		body[LeaveRequest]()+". Ends the membership at once."),
	about(reading, Row{Verb: VerbMembers, Path: AllMembers, Many: true},
		"The election as a cluster: its members with their roles, the token that each follows, the quorum, and a status."),
	about(reading, Row{Verb: VerbAcknowledgement, Method: http.MethodPost, Path: ":awaitAcknowledgement", Waits: true},
		body[AcknowledgementRequest]()+", one of the first two at least. Which members follow the token and have applied the journal so far, and which do not; with `wait` once so many do."),
	about(leading, Row{Verb: VerbHandOver, Path: ":handOver", Metric: "handOver", Body: func() Body { return &HandOverRequest{} }},
		body[HandOverRequest]()+". Names the successor of the present term, which ends within that time; without `to` the best candidate that waits."),
	about(leading, Row{Verb: VerbSayReady, Path: ":ready", Metric: "sayReady", Body: func() Body { return &holding[leadership.SayReady]{} }},
		body[Holder]()+", the token of the present leader. The successor has loaded what it needs."),
	about(leading, Row{Verb: VerbSayServing, Path: ":serving", Metric: "sayServing", Body: func() Body { return &holding[leadership.SayServing]{} }},
		body[Holder]()+". With the policy `promotion` a new leader has loaded what it needs: until then `checkToken` for a write answers `NOT_READY`."),
	about(leading, Row{Verb: VerbYield, Path: ":yield", Metric: "yield", Body: func() Body { return &holding[leadership.Yield]{} }},
		body[Holder]()+". The leader has stopped: only its successor can take the lease, with its next acquire and no vacancy between. `NOT_READY` while that is not ready."),
	about(leading, Row{Verb: VerbDelegate, Path: ":delegate", Metric: "delegate", Audited: true},
		"Body `{candidateId, key, fencingToken, child, limits?: {depth?, children?, budget?}}`. Makes the election `{election}.{child}` for a part of the leader's task; its leases end with the leader's. `DEPTH_EXCEEDED` or `LIMIT_EXCEEDED` beyond the limits."),
	about(reading, Row{Verb: VerbTree, Path: TreePath, Many: true},
		"The election and what was delegated below it, as far as the caller may read it: `{…, complete, children: [{…, children}]}`."),
	about(leading, Row{Verb: VerbPutCheckpoint, Method: http.MethodPut, Path: CheckpointPath, Metric: "checkpoint", Large: true},
		"Body `{candidateId, key, fencingToken, sequence, task?, data or uri, sha256?}`, the data up to 64 KiB of JSON. What a successor is to go on from. The leader counts its checkpoints in `sequence`, from 1, so that a late copy of an earlier call replaces none: `INDEX_MISMATCH` with the present one. `TOKEN_STALE` once a later leader has inherited."),
	about(reading, Row{Verb: VerbCheckpoint, Path: CheckpointPath, Roles: inherits},
		"The checkpoint, `{fencingToken, leaderId, sequence, task?, at, data or uri, sha256?}`."),
	about(leading, Row{Verb: VerbOpenJournal, Path: JournalPath + ":open", Metric: "journalOpen", Large: true},
		body[Holder]()+". From then on no earlier leader can append, and the entries up to `index` are complete. Answers `{index, snapshotIndex}`."),
	about(leading, Row{Verb: VerbAppendJournal, Path: JournalPath + Append, Metric: "journalAppend", Large: true},
		"Body `{candidateId, key, fencingToken, after, entries: [{type?, data}]}`, up to 500 entries and 512 KiB. All or none, right after the index `after`; `INDEX_MISMATCH` with the present index. `LIMIT_EXCEEDED` beyond 16 MiB of entries that no snapshot stands for."),
	about(reading, Row{Verb: VerbJournal, Path: JournalPath, Roles: inherits},
		"The entries after an index: `?after=INDEX&generation=&limit=`, up to some 4 MiB. With `&member=ID&applied=INDEX` the reader is a follower that has applied so much. `HISTORY_COMPACTED` where only a snapshot is kept, or the store was restored."),
	about(reading, Row{Verb: VerbFollowJournal, Path: JournalPath, Type: StreamType, Roles: inherits, Waits: true},
		"A stream of the entries (`Accept: text/event-stream`), after `Last-Event-ID` or `?after=INDEX`. With `?member=ID&applied=INDEX` its reader is a follower while it is open."),
	about(leading, Row{Verb: VerbSnapshotJournal, Method: http.MethodPut, Path: JournalPath + SnapshotPath, Metric: "journalSnapshot", Large: true},
		"Body `{candidateId, key, fencingToken, upTo, data or uri}`, the data up to 512 KiB of JSON. Stands for the entries up to that index, which are deleted."),
	about(reading, Row{Verb: VerbReadSnapshot, Path: JournalPath + SnapshotPath, Roles: inherits},
		"The newest snapshot of the journal: `{upTo, fencingToken, at, data or uri}`."),
	about(leading, Row{Verb: VerbBeginEffect, Path: ":begin", Metric: "effectBegin"},
		body[BeginRequest]()+". Notes that the leader is about to cause an effect. `state` is `new`: do it; `done`, with the `result`: it was done; `inDoubt`: an earlier leader, or another attempt, has begun it and not finished it. `LIMIT_EXCEEDED` with 100 that are not finished. `TOKEN_STALE` once a later leader has begun one, or has inherited."),
	about(leading, Row{Verb: VerbFinishEffect, Path: ":finish", Metric: "effectFinish"},
		body[FinishRequest]()+", the result up to 1 KiB of JSON. The effect was caused: `begin` answers `done` from now on. Also of one that an earlier leader has begun. `INVALID_ARGUMENT` if it is done with another result."),
	about(reading, Row{Verb: VerbEffects, Path: EffectsPath, Roles: inherits, Many: true},
		"The last 1,000 effects, fewer if they have more than 512 KiB: `{fencingToken, effects: [{election, effectId, state, fencingToken, leaderId, at, attemptId?, result?}]}`, with `begun` of the last leader that has begun, finished or inherited any; its lease may be over."),
	about(leading, Row{Verb: VerbPropose, Path: ":propose", Cost: CostRead, Metric: "propose", Waits: true},
		body[ProposeRequest]()+", the data up to 2 KiB of JSON. Asks the leader, now or within the `ttl`. With `wait` the answer comes once it is decided; the same call again is about the same proposal. `LIMIT_EXCEEDED` with 64 open ones of the election, or 8 of the caller."),
	about(leading, Row{Verb: VerbDecide, Path: ":decide", Metric: "decide"},
		body[DecideRequest]()+", the verdict `accepted` or `rejected`. The leader decides a proposal, once: `INVALID_ARGUMENT` if it is decided otherwise, `NOT_FOUND` once its `ttl` is over, `TOKEN_STALE` once a later leader has decided one."),
	about(reading, Row{Verb: VerbProposals, Path: ProposalsPath},
		"The proposals that are kept: `{open: [{election, proposalId, candidateId, principal?, kind, data?, at, until}], decided: [{…, decision: {verdict, note?, fencingToken, leaderId, at}}]}`, 64 of each at most."),
	{
		Verb: VerbTick, Method: http.MethodPost, Path: PathTick, Type: ContentType,
		Roles: ticks, Cost: CostRead, Repeat: RepeatYes, Audited: true, Waits: true,
		Does: "For a scheduler: announces events that were left behind, records leases that ran out unseen, and retires elections. Takes up to 40 s.",
	},
	{Verb: VerbLive, Method: http.MethodGet, Path: PathLive, Type: ContentType, Repeat: RepeatRead, Does: "200 while the process answers."},
	{Verb: VerbReady, Method: http.MethodGet, Path: PathReady, Type: ContentType, Repeat: RepeatRead, Does: "200 while this instance can serve; `status` may be `degraded`."},
	{Verb: VerbKeySet, Method: http.MethodGet, Path: PathKeySet, Type: ContentType, Repeat: RepeatRead, Does: "The public keys of statements (JWKS); 404 if the server signs none."},
	{Verb: VerbSpec, Method: http.MethodGet, Path: PathSpec, Repeat: RepeatRead, Does: "The contract of this API, OpenAPI 3.1."},
}

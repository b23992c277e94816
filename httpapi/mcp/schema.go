package mcp

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"regent/leadership"
)

type object = map[string]any

const (
	durationPattern = `^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	electionPattern = `^[a-z0-9]([a-z0-9._-]{0,126}[a-z0-9])?$`
)

var (
	duration  = object{"pattern": durationPattern}
	candidate = object{"minLength": 1, "maxLength": leadership.MaxCandidateLength, "pattern": `^[A-Za-z0-9._@:-]+$`}
	line      = object{"maxLength": leadership.MaxReasonBytes}
	counter   = object{"minimum": 0, "maximum": int64(leadership.MaxToken)}
	anObject  = object{"type": "object"}
)

// property describes a member of a tool's input or output, and its values. A name means the same in
// all tools.
type property struct {
	means string
	form  object // in addition to its type; nil for nothing
}

// properties has all members of all tools. It is never changed.
var properties = map[string]property{
	// what a call is about
	"election":       {"the name of the election: a-z, 0-9, '.', '_' and '-'", object{"minLength": 1, "maxLength": leadership.MaxElectionLength, "pattern": electionPattern}},
	"candidateId":    {"the candidate's id, unique in its election: A-Z, a-z, 0-9 and ._@:-; lead makes one up if it is left out", candidate},
	"handle":         {"the handle that lead has returned; keep it to yourself", object{"minLength": 1, "maxLength": maxHandle}},
	"fencingToken":   {"the fencing token: it rises with every new leader, and goes with every write", object{"minimum": 0, "maximum": int64(leadership.MaxToken)}},
	"afterRevision":  {"what comes after this revision of the election; 0 is before the first", counter},
	"afterIndex":     {"what comes after this index of the journal; 0 is before the first", counter},
	"after":          {"the index of the last entry of the journal that you know, as the last answer has it; 0 for none. The entries come right after it", counter},
	"generation":     {"of the journal, as the last answer has it; send it with afterIndex. It rises when the store is restored from a backup: what was read before is void, and a snapshot comes anew", object{"minimum": 0, "maximum": int64(leadership.MaxToken)}},
	"limit":          {"how many at most; 100 if it is left out", object{"minimum": 1, "maximum": leadership.MaxPageSize}},
	"wait":           {fmt.Sprintf("how long to wait, up to %v, such as \"30s\"; many clients give up on a call after 60s", maxWait), duration},
	"keep":           {fmt.Sprintf("how long the server goes on leading after the last call with the handle, from %v to %v; \"120s\" if it is left out. Choose longer than the longest step between two calls", minKeep, maxKeep), duration},
	"leaseDuration":  {"how long the lease lasts without a renewal, " + leadership.LeaseBounds.String() + "; as the election is configured if it is left out", duration},
	"metadata":       {"a JSON object of at most 4 KiB that describes the leader to readers, such as its address", anObject},
	"note":           {"one line for people", line},
	"priority":       {"where the election's policy asks for it: greater is better", object{"minimum": leadership.MinPriority, "maximum": leadership.MaxPriority}},
	"capabilities":   {"what the candidate can do, where the election's policy asks for it", nil},
	"inherit":        {"also return what earlier leaders have left: the last checkpoint, effects in doubt, and open proposals", nil},
	"outcome":        {"done; failed: it cannot be done so; stopped: it was cut short", object{"enum": []leadership.Outcome{leadership.OutcomeDone, leadership.OutcomeFailed, leadership.OutcomeStopped}}},
	"reason":         {"why, in one line; the election's history keeps it", line},
	"for":            {"for how long, " + leadership.OrderBounds.String(), duration},
	"ban":            {"how long the leader's candidate is not granted the lease, " + leadership.OrderBounds.String() + "; not at all if it is left out", duration},
	"mode":           {"freeze: the present leader goes on; drain: its term ends, too", object{"enum": []string{"freeze", "drain"}}},
	"newEpoch":       {"the leader is to go on under the next fencing token", nil},
	"prefix":         {"only elections whose names begin with it", object{"maxLength": leadership.MaxElectionLength}},
	"pageToken":      {"nextPageToken of the page before", object{"maxLength": leadership.MaxElectionLength}},
	"write":          {"the caller is going to write: also refuse while the election is read-only, or its leader does not serve yet", nil},
	"task":           {"what it is about, in one line", object{"maxLength": leadership.MaxTaskBytes}},
	"data":           {"any JSON but null", object{}},
	"uri":            {"where the data is", object{"maxLength": leadership.MaxURIBytes}},
	"sha256":         {"of what is at the uri, in hexadecimal", object{"pattern": "^[0-9A-Fa-f]{64}$"}},
	"entries":        {"entries of the journal, in order", object{"maxItems": leadership.MaxEntries}},
	"type":           {"its kind", nil},
	"progress":       {"any number that rises with useful work; one that is smaller than the last changes nothing", counter},
	"tasks":          {"tasks done", counter},
	"tokensUsed":     {"tokens of a language model that were used", counter},
	"calls":          {"calls made", counter},
	"errors":         {"how many of the calls failed", counter},
	"eta":            {"when the work will be done, as a time from now", duration},
	"health":         {"one line for people, as \"ok\"", line},
	"dependencies":   {"what the leader depends on, and how that is", anObject},
	"custom":         {"anything else", anObject},
	"leading":        {"whether the caller may act as leader; if false, it must stop at once", nil},
	"leadsForMs":     {"how long that is certain without another renewal, in ms", counter},
	"endsBecause":    {"why the term ends however often it is renewed: maxTerm, approval, stuck, evicted, drained, handOver, parent", nil},
	"endsInMs":       {"when it does, in ms from now", counter},
	"notices":        {"what has happened since the last call", nil},
	"why":            {"why the caller does not lead any more", nil},
	"inherited":      {"what the last leader has left", nil},
	"inDoubt":        {"effects that earlier leaders have begun and not finished", nil},
	"effectId":       {"a name for the effect, unique in the election: A-Z, a-z, 0-9 and ._@:-", candidate},
	"attemptId":      {"the call that began the effect, until it is done", nil},
	"result":         {"any JSON but null, for leaders that begin it later", object{}},
	"open":           {"proposals that are not decided, in the order in which they were made", nil},
	"decided":        {"the last decisions, in their order", nil},
	"proposalId":     {"a name for the proposal, unique in the election: A-Z, a-z, 0-9 and ._@:-", candidate},
	"ttl":            {"how long it is open, from 1s to 24h; \"10m\" if it is left out", duration},
	"verdict":        {"what the leader decides", object{"enum": []leadership.ProposalVerdict{leadership.ProposalAccepted, leadership.ProposalRejected}}},
	"state":          {"of an election: held by a leader, or vacant; of an effect: new (cause it), begun, done (it was caused) or inDoubt (it may have been)", nil},
	"leaderId":       {"the candidate that leads or, of a checkpoint, an effect or a decision, that put, noted or made it", nil},
	"previousLeader": {"the candidate that led until this change", nil},
	"revision":       {"counts the changes of the election; an order names that which who_leads has shown, and is refused after another change, as is a late copy of it", counter},
	"expiresInMs":    {"what is left of the lease unless it is renewed, in ms", counter},
	"lockedForMs":    {"how long no lease can be granted, though there is no leader, in ms", counter},
	"report":         {"what the leader has said last of its work", anObject},
	"reportAgeMs":    {"how old that is, in ms", counter},
	"maxStalenessMs": {"how old the answer may be, in ms", counter},
	"leads":          {"whether the candidate leads", nil},
	"reasons":        {"why not, the most lasting first", nil},
	"code":           {"the reason, in a word", nil},
	"override":       {"the order behind it", nil},
	"pattern":        {"all candidates that it bars: those whose ids begin so", nil},
	"principal":      {"the verified caller that proposed it or, of a reason, that it bars: the candidate only if it calls as that", nil},
	"until":          {"when it counts, or is kept, no longer, by the store's clock", nil},
	"decision":       {"what a leader has said; left out while the proposal is open", nil},
	"sequence":       {"counts the checkpoints of one leader: 1 for its first, and one more for each that follows, also in a new epoch", counter},
	"snapshotIndex":  {"entries up to it are only to be had as a snapshot", counter},
	"by":             {"the principal behind it", nil},
	"untilMs":        {"how long it still counts, in ms", counter},
	"position":       {"in line, from 1", counter},
	"of":             {"how many stand in line", counter},
	"have":           {"members that are present", counter},
	"need":           {"members that must be", counter},
	"events":         {"changes, oldest first", nil},
	"at":             {"when, by the store's clock", nil},
	"detail":         {"more about it", anObject},
	"actor":          {"the principal that did it", nil},
	"changed":        {"whether there was a change in time", nil},
	"event":          {"the change", nil},
	"index":          {"its place in the journal or, of an answer, that of the last entry", counter},
	"snapshot":       {"stands for all entries up to upTo", nil},
	"upTo":           {"the last index that it stands for", counter},
	"more":           {"whether there are more; of a journal, read again after the last index", nil},
	"current":        {"the token is that of the present leader", nil},
	"stopped":        {"true: the caller does not lead any more", nil},
	"done":           {"true: it was done", nil},
	"kind":           {"of a proposal: what it asks for, in a word or two of at most 64 bytes; of a notice: evicted, drained, handOver, maxTerm, approvalDue, stuck, goesOn, newEpoch, tripped", nil},
	"leftMs":         {"how long the term still lasts, in ms; 0 if it has no end", counter},
	"endedBecause":   {"why the last term ended", nil},
	"elections":      {"of a list, in the order of their names; of the reason HALTED, the pattern of names that is halted", nil},
	"nextPageToken":  {"send it as pageToken to read on, even if this page has none; left out on the last page", nil},

	// of a cluster
	"clusterSize":        {"how many members there are", counter},
	"leader":             {"the candidate that leads", nil},
	"term":               {"the fencing token of the election or, of a member, that it follows, as far as it has said", counter},
	"status":             {"healthy, noLeader, noQuorum: too few members are present, or diverged: a member follows another token than the leader's", nil},
	"participation":      {"the part of the electorate that is present or, without one, of the members that follow the leader; 0 to 1", nil},
	"complete":           {"whether the members at all instances are among them", nil},
	"readOnly":           {"the quorum is lost: do not write", nil},
	"quorum":             {"how many members of the electorate have to be present, and are", nil},
	"size":               {"of the electorate", counter},
	"present":            {"how many of it are present", counter},
	"toleratedFailures":  {"how many of it may fail", counter},
	"journalIndex":       {"of the last entry of the journal, as far as it is known", counter},
	"seats":              {"how many seats the election has, each with a leader of its own: the members are those of all", counter},
	"seat":               {"the number of the seat of which it is a member; left out of one of the election itself, such as a candidate in line", counter},
	"nodes":              {"the members, in the order of their ids", nil},
	"id":                 {"the member's id", nil},
	"role":               {"leader, candidate, follower, worker or witness", nil},
	"lastHeartbeatAgoMs": {"since the member was last heard of, in ms", counter},
	"applied":            {"the last index of the journal that the member has applied", counter},
	"lag":                {"how many entries it has not applied", counter},
}

// schema returns the schema of an input, without the members that do not apply here.
func (d *desk) schema(t reflect.Type) object {
	s := schemaOf(t)
	if !d.shared {
		delete(s["properties"].(object), "keep")
	}
	return s
}

// schemaOf returns the JSON schema of a struct. A field without omitzero is required.
func schemaOf(t reflect.Type) object {
	members, required := object{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || name == "" || name == "-" {
			continue
		}
		p := properties[name]
		s := object{"description": p.means}
		maps.Copy(s, typeOf(f.Type))
		maps.Copy(s, p.form)
		members[name] = s
		if option == "" {
			required = append(required, name)
		}
	}
	s := object{"type": "object", "properties": members, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// typeOf returns the JSON schema of a type.
func typeOf(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[jsontext.Value](), t == reflect.TypeFor[json.RawMessage]():
		return nil // any
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return object{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeOf(t.Elem())
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice:
		return object{"type": "array", "items": typeOf(t.Elem())}
	case reflect.Struct:
		return schemaOf(t)
	}
	return object{"type": "integer"}
}

package checker

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"regent/leadership"
)

// LogVerb is what a LogCall asks for.
type LogVerb string

// The calls on what leaders leave behind.
const (
	OpenJournal   LogVerb = "open"
	Append        LogVerb = "append"
	PutSnapshot   LogVerb = "snapshot"
	ReadEntries   LogVerb = "read"
	ReadHead      LogVerb = "head"
	ReadSnapshot  LogVerb = "read snapshot"
	PutCheckpoint LogVerb = "put"
	Inherit       LogVerb = "inherit"
)

// LogCall is one call on the journal, or on the checkpoint, of an election. A read of a journal is
// two: of the entries, and of the head.
type LogCall struct {
	Verb     LogVerb
	Election leadership.Election
	Token    leadership.Token // of the leader that asks; 0 of a reader
	After    leadership.Index // append, read; snapshot: up to it; put: the sequence before
	Put      []string         // append: the entries; snapshot, put: what it holds

	Asked    time.Duration
	Answered time.Duration // Forever if the answer was lost
	Code     leadership.Code

	Got      []string         // the entries, or what the snapshot or the checkpoint holds
	Index    leadership.Index // of the journal, as the answer or the refusal has it
	Snapshot leadership.Index
}

// String is what a reader of a report needs to find the call.
func (c LogCall) String() string {
	return fmt.Sprintf("%s of %q with token %d, after %d, of %q, %v to %v: %q, index %d, snapshot %d, %s",
		c.Verb, c.Election, c.Token, c.After, c.Put, c.Asked, c.Answered, c.Got, c.Index, c.Snapshot, cmp.Or(c.Code, "done"))
}

// Journals checks journals and checkpoints: there is an order of all calls, each at one moment
// between its call and its answer, in which
//
//   - an acknowledged append follows the index that it names and is there for ever, once, and in
//     its order; the same append again gives the same answer and appends nothing;
//   - the first call of a leader with a higher token ends what those with lower ones may write, so
//     that what it reads then is complete;
//   - each read has exactly the entries that follow its index, without a gap, and at least one if
//     there is one, or is told from where on they are kept;
//   - a snapshot stands for no more entries than there are, and the newest stays;
//   - a leader inherits the last checkpoint that was put, and none is put after that by another;
//   - each checkpoint of a leader follows on its last one: no late copy of an earlier call does.
//
// A call whose outcome is unknown may have been done at any later moment, or not at all.
func Journals(calls []LogCall) Report {
	report := Report{Checked: len(calls)}
	byElection := make(map[leadership.Election][]LogCall)
	for _, c := range calls {
		byElection[c.Election] = append(byElection[c.Election], c)
	}
	for e, calls := range byElection {
		for _, of := range [][]LogVerb{{PutCheckpoint, Inherit}, {OpenJournal, Append, PutSnapshot, ReadEntries, ReadHead, ReadSnapshot}} {
			var ops []porcupine.Operation
			for i, c := range calls {
				if !slices.Contains(of, c.Verb) || c.Code == leadership.LeaseLost || c.Code == leadership.StoreUnavailable {
					continue
				}
				end := int64(c.Answered)
				if c.Code == leadership.OutcomeUnknown || c.Answered == Forever {
					end = math.MaxInt64
				}
				ops = append(ops, porcupine.Operation{ClientId: i, Input: c, Output: c, Call: int64(c.Asked), Return: end})
			}
			model := logModel.ToModel()
			switch verdict, info := porcupine.CheckOperationsVerbose(model, ops, Patience); verdict {
			case porcupine.Illegal:
				report.add(Illegal, "election %q: %s", e, stuckLog(model, info, ops))
			case porcupine.Unknown:
				report.add(Undecided, "election %q: no order of %d calls was found in %v", e, len(ops), Patience)
			}
		}
	}
	return report
}

// stuckLog names a call that cannot follow the longest order that was found.
func stuckLog(m porcupine.Model, info porcupine.LinearizationInfo, ops []porcupine.Operation) string {
	var longest []porcupine.Operation
	for _, partition := range info.PartialLinearizationsOperations() {
		for _, order := range partition {
			if len(order) > len(longest) {
				longest = order
			}
		}
	}
	taken := make(map[int]bool)
	for _, op := range longest {
		taken[op.ClientId] = true
	}
	for _, op := range ops {
		if !taken[op.ClientId] {
			return fmt.Sprintf("%v cannot follow on %d others", op.Input, len(longest))
		}
	}
	return "no order was found"
}

// logState is a journal, or a checkpoint.
type logState struct {
	mark     leadership.Token
	entries  string           // separated by line ends; the first has index 1
	index    leadership.Index // of a checkpoint: how many its leader has put
	last     string           // the append that was done last
	snapshot leadership.Index
	held     string // by the snapshot, or the checkpoint
}

var logModel = porcupine.NondeterministicModel{
	Init: func() []any { return []any{logState{}} },
	Step: func(before, input, _ any) (after []any) {
		s, c := before.(logState), input.(LogCall)
		now, code := s.do(c)
		switch {
		case c.Code == leadership.OutcomeUnknown || c.Answered == Forever:
			if after = []any{s}; code == "" && now != s {
				after = append(after, now)
			}
		case code == c.Code && now.shows(c):
			after = []any{now}
		}
		return after
	},
}

// do is what the call does, and the code that its caller is told.
func (s logState) do(c LogCall) (logState, leadership.Code) {
	if c.Token > 0 && s.mark > c.Token {
		return s, leadership.TokenStale
	}
	if (c.Verb == PutCheckpoint || c.Verb == Inherit) && c.Token > s.mark {
		s.index = 0
	}
	if c.Code != leadership.TokenStale {
		s.mark = max(s.mark, c.Token)
	}
	put := strings.Join(c.Put, "\n")
	switch c.Verb {
	case Append:
		this, n := fmt.Sprint(c.After, c.Token, " ", put), leadership.Index(len(c.Put))
		switch {
		case s.index == c.After+n && s.last == this:
		case s.index != c.After:
			return s, leadership.IndexMismatch
		default:
			s.entries, s.index, s.last = s.entries+put+"\n", s.index+n, this
		}
	case PutSnapshot:
		switch {
		case c.After > s.index:
			return s, leadership.IndexMismatch
		case c.After > s.snapshot:
			s.snapshot, s.held = c.After, put
		case c.After == s.snapshot && put != s.held:
			return s, leadership.InvalidArgument
		}
	case PutCheckpoint:
		switch {
		case s.index == c.After+1 && s.held == put:
		case s.index != c.After:
			return s, leadership.IndexMismatch
		default:
			s.index, s.held = c.After+1, put
		}
	case ReadSnapshot:
		if s.snapshot == 0 {
			return s, leadership.NotFound
		}
	case ReadEntries: // entries that a snapshot stands for may be there for a while
		if c.Code == leadership.HistoryCompacted && c.After < s.snapshot || c.Code == leadership.IndexMismatch && c.After > s.index {
			return s, c.Code
		}
	}
	return s, ""
}

// shows reports whether the answer is one of the state after the call.
func (s logState) shows(c LogCall) bool {
	switch c.Verb {
	case Append:
		return c.Code == leadership.TokenStale || c.Index == s.index
	case PutCheckpoint:
		return c.Code != leadership.IndexMismatch || c.Index == s.index
	case OpenJournal, ReadHead:
		return c.Code != "" || c.Index == s.index && c.Snapshot == s.snapshot
	case PutSnapshot:
		return c.Code != "" || c.Snapshot == s.snapshot
	case ReadSnapshot:
		return c.Code != "" || c.Index == s.snapshot && strings.Join(c.Got, "\n") == s.held
	case Inherit:
		return c.Code != "" || strings.Join(c.Got, "\n") == s.held
	case ReadEntries:
		if c.Code != "" {
			return true
		}
		left := strings.Split(s.entries, "\n")[min(c.After, s.index):s.index]
		return len(c.Got) <= len(left) && slices.Equal(c.Got, left[:len(c.Got)]) && (len(c.Got) > 0 || len(left) == 0)
	}
	return true
}

package firestore

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"regent/leadership"
	"regent/leadership/rule"
)

const (
	collection        = "leadership" // of the lease documents
	eventsCollection  = "events"     // below a lease document
	historyCollection = "history"    // below a lease document
	newestDocument    = "newest"     // the one document there
	nameField         = "__name__"   // how a query calls a document's name

	secretDocument = "leadershipTickets/secret"

	logsCollection     = "leadershipLogs" // of the heads of logs
	segmentsCollection = "segments"       // below the head of a log
	// kindMark stands between the election and the kind in the id of a log's document. It sorts
	// before all characters of an election's name, so that logs sort as their elections do.
	kindMark = "!"
)

// idDigits is the number of digits of an event's or a segment's document id, so that names sort as
// revisions and indices do.
const idDigits = 20

// database names a Firestore database: projects/P/databases/D.
type database string

func (d database) documents() string { return string(d) + "/documents" }

func (d database) secret() string { return d.documents() + "/" + secretDocument }

func (d database) lease(e leadership.Election) string {
	return d.documents() + "/" + collection + "/" + string(e)
}

func (d database) newest(e leadership.Election) string {
	return d.lease(e) + "/" + historyCollection + "/" + newestDocument
}

func (d database) event(id leadership.EventID) string {
	return fmt.Sprintf("%s/%s/%0*d", d.lease(id.Election), eventsCollection, idDigits, id.Revision)
}

func (d database) log(id rule.LogID) string {
	return d.documents() + "/" + logsCollection + "/" + string(id.Election) + kindMark + string(id.Kind)
}

// parseLog reads the name of the head of a log; ok is false if it is the name of anything else.
func parseLog(name string) (id rule.LogID, ok bool) {
	e, kind, ok := strings.Cut(path.Base(name), kindMark)
	id = rule.LogID{Election: leadership.Election(e), Kind: rule.LogKind(kind)}
	return id, ok && id.Election.Validate() == nil && kind != "" && strings.Trim(kind, "abcdefghijklmnopqrstuvwxyz") == ""
}

// segment returns the name of the document for a segment of a log; see placeOf.
func (d database) segment(id rule.LogID, place leadership.Index) string {
	return fmt.Sprintf("%s/%s/%0*d", d.log(id), segmentsCollection, idDigits, place)
}

// afterEvents sorts after the names of all events of an election, and before those of the next.
func (d database) afterEvents(e leadership.Election) string {
	return d.lease(e) + "/" + eventsCollection + "/" + lastRune
}

// lastRune sorts after every character of an election's name or of an event's id, so that all names
// with a prefix sort before prefix+lastRune.
const lastRune = "~"

// parseEvent reads the name of an event's document; ok is false if it is the name of anything else.
func (d database) parseEvent(name string) (id leadership.EventID, ok bool) {
	path, inside := strings.CutPrefix(name, d.documents()+"/"+collection+"/")
	parts := strings.Split(path, "/")
	if !inside || len(parts) != 3 || parts[1] != eventsCollection {
		return leadership.EventID{}, false
	}
	e := leadership.Election(parts[0])
	revision, err := parseRevision(parts[2])
	if err != nil || e.Validate() != nil {
		return leadership.EventID{}, false
	}
	return leadership.EventID{Election: e, Revision: revision}, true
}

func parseRevision(digits string) (leadership.Revision, error) {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 1 || fmt.Sprintf("%0*d", idDigits, n) != digits {
		return 0, fmt.Errorf("%.64q is no revision", digits)
	}
	return leadership.Revision(n), nil
}

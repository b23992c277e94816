package storagefence

import (
	"fmt"
	"strconv"

	"regent/leadership"
	"regent/leadership/fence"
)

// The keys of an object's metadata.
const (
	electionKey = "regent-election"
	tokenKey    = "regent-fencing-token"
	idKey       = "regent-write-id"
	deletedKey  = "regent-deleted"
)

func (v Version) id() string    { return v.Metadata[idKey] }
func (v Version) deleted() bool { return v.Metadata[deletedKey] == "true" }

// mark returns the mark in the metadata, or zero if there is none. It refuses marks that no write
// leaves.
func (v Version) mark() (fence.Mark, error) {
	election, hasElection := v.Metadata[electionKey]
	text, hasToken := v.Metadata[tokenKey]
	if !hasElection && !hasToken {
		return fence.Mark{}, nil
	}
	token, _ := strconv.ParseInt(text, 10, 64)
	m := fence.Mark{Election: leadership.Election(election), Token: leadership.Token(token)}
	if _, err := (fence.Mark{}).Admit(m); err != nil || strconv.FormatInt(token, 10) != text {
		return fence.Mark{}, &leadership.Error{Code: leadership.RecordCorrupt, Detail: fmt.Sprintf(
			"the metadata of generation %d is not a valid mark: %s is %.64q and %s is %.64q; find out what wrote it, and repair it",
			v.Generation, electionKey, election, tokenKey, text)}
	}
	return m, nil
}

// metadata returns the metadata that the write stores with its content.
func (w *write) metadata() map[string]string {
	m := map[string]string{
		electionKey: string(w.mark.Election),
		tokenKey:    strconv.FormatInt(int64(w.mark.Token), 10),
		idKey:       w.id,
	}
	if w.deleted {
		m[deletedKey] = "true"
	}
	return m
}

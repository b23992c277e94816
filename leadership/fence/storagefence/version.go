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

// version is what the JSON API says of an object, as far as it is of use here. The zero version is that of an object that is not there.
type version struct {
	Generation     Generation        `json:"generation,string"`
	Metageneration int64             `json:"metageneration,string"`
	Metadata       map[string]string `json:"metadata"`
}

func (v version) id() string    { return v.Metadata[idKey] }
func (v version) deleted() bool { return v.Metadata[deletedKey] == "true" }

// mark returns the mark in the metadata, zero if there is none. One that no write leaves is refused.
func (v version) mark() (fence.Mark, error) {
	election, hasElection := v.Metadata[electionKey]
	text, hasToken := v.Metadata[tokenKey]
	if !hasElection && !hasToken {
		return fence.Mark{}, nil
	}
	token, _ := strconv.ParseInt(text, 10, 64)
	m := fence.Mark{Election: leadership.Election(election), Token: leadership.Token(token)}
	if _, err := (fence.Mark{}).Admit(m); err != nil || strconv.FormatInt(token, 10) != text {
		return fence.Mark{}, &leadership.Error{Code: leadership.RecordCorrupt, Detail: fmt.Sprintf(
			"the metadata of generation %d is no mark: %s is %.64q and %s is %.64q; find out who wrote them, and put them right",
			v.Generation, electionKey, election, tokenKey, text)}
	}
	return m, nil
}

// metadata is what the write leaves beside its content.
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

package cloud

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// field has the store's requirements for a field: those of "Setting up" in package store/firestore,
// and no index for a field that grows with time and is never queried.
type field struct {
	group   string
	name    string
	indexes []string // scopes of ascending indexes; none: it must be exempt
	ttl     bool
}

const (
	collection      = "COLLECTION"
	collectionGroup = "COLLECTION_GROUP"
)

var fields = []field{
	{"events", "unannounced", []string{collection, collectionGroup}, false},
	{"events", "requestedAt", []string{collectionGroup}, false},
	{"events", "deleteAfter", nil, true},
	{"segments", "deleteAfter", nil, true},
	{"leadership", "leaderId", []string{collection}, false},
	{"leadership", "retireAt", []string{collection}, false},
	{"leadership", "renewalDue", nil, false},
}

// fieldAnswer is a Field of Firestore's admin API.
type fieldAnswer struct {
	IndexConfig struct {
		Indexes []struct {
			QueryScope string
			State      string
			Fields     []struct{ FieldPath, Order string }
		}
	}
	TTLConfig *struct{ State string }
}

// Firestore checks the indexes and the TTL policy of a database.
func (c *Client) Firestore(ctx context.Context, project, database string) (found []Finding) {
	for _, f := range fields {
		check := "field " + f.group + "." + f.name
		var is fieldAnswer
		path := "/v1/" + escape(fmt.Sprintf("projects/%s/databases/%s/collectionGroups/%s/fields/%s", project, database, f.group, f.name))
		if err := c.get(ctx, firestoreAPI, path, &is); err != nil {
			found = append(found, failed(check, err, "datastore.indexes.get", "roles/datastore.viewer"))
			continue
		}
		found = append(found, f.judge(check, is))
	}
	return found
}

// judge compares the requirements for a field with its present state.
func (f field) judge(check string, is fieldAnswer) Finding {
	var wrong []string
	ready := []string{}
	for _, index := range is.IndexConfig.Indexes {
		ascending := len(index.Fields) == 1 && index.Fields[0].Order == "ASCENDING"
		needed := ascending && slices.Contains(f.indexes, index.QueryScope)
		switch {
		case needed && index.State == "READY":
			ready = append(ready, index.QueryScope)
		case needed:
			wrong = append(wrong, fmt.Sprintf("its ascending index of scope %s is %s: wait until it is READY", index.QueryScope, index.State))
			ready = append(ready, index.QueryScope) // not counted as missing
		}
	}
	for _, scope := range f.indexes {
		if !slices.Contains(ready, scope) {
			wrong = append(wrong, fmt.Sprintf("it has no ascending index of scope %s, which queries need: add it", scope))
		}
	}
	if extra := len(is.IndexConfig.Indexes); len(f.indexes) == 0 && extra > 0 {
		wrong = append(wrong, fmt.Sprintf("it has %d indexes that nothing uses, and that make writes slower and dearer: exempt it from indexing", extra))
	}
	switch {
	case f.ttl && is.TTLConfig == nil:
		wrong = append(wrong, "it has no TTL policy, so that what is due is never deleted: add one")
	case f.ttl && is.TTLConfig.State != "ACTIVE":
		wrong = append(wrong, fmt.Sprintf("its TTL policy is %s: wait until it is ACTIVE", is.TTLConfig.State))
	}
	if len(wrong) > 0 {
		return notOK(check, "%s; terraform/firestore.tf has all settings", strings.Join(wrong, "; "))
	}
	return ok(check, "%s", f)
}

func (f field) String() string {
	text := "no index"
	if len(f.indexes) > 0 {
		text = "ascending, of scope " + strings.Join(f.indexes, " and ")
	}
	if f.ttl {
		text += ", and a TTL policy"
	}
	return text
}

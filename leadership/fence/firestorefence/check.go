package firestorefence

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cloud.google.com/go/firestore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"regent/leadership"
	"regent/leadership/fence"
)

// Collection is the collection of the documents returned by Doc.
const Collection = "fences"

// Doc returns a document for the resource's mark: in Collection, named after the resource, with
// "%2F" for a slash and "%25" for a percent sign. Any other document that is used for nothing else
// works as well. Check fails for names that Firestore refuses as a document id, such as "", "." and
// more than 1,500 bytes.
func Doc(client *firestore.Client, resource string) *firestore.DocumentRef {
	return client.Collection(Collection).Doc(strings.NewReplacer("%", "%25", "/", "%2F").Replace(resource))
}

// Fenced returns a function for RunTransaction. It runs f if the leader named by w may write to the
// resource whose mark is in doc, and then raises the mark to w if it is lower, in the same commit
// as the writes of f. f may do what any transaction function does: read, then write. f does not run
// if the leader is refused; RunTransaction then returns Check's error without a retry.
//
// Fenced may be nested, for a transaction that writes to several resources.
func Fenced(
	doc *firestore.DocumentRef, w fence.Mark, f func(context.Context, *firestore.Transaction) error,
) func(context.Context, *firestore.Transaction) error {
	return func(ctx context.Context, tx *firestore.Transaction) error {
		stored, next, err := admit(tx, doc, w)
		if err != nil {
			return err
		}
		if err := f(ctx, tx); err != nil {
			return err
		}
		return raise(tx, doc, stored, next)
	}
}

// Check lets the transaction continue if the leader named by w may write to the resource whose mark
// is in doc, and raises the mark to w if it is lower. The caller must return the error unchanged
// from the transaction's function; nothing is written then. It is
//
//   - a *leadership.Error of fence.Mark.Admit: TokenStale (a later leader has written) or
//     InvalidArgument;
//   - a *leadership.Error with RecordCorrupt, if the document is not a mark. It is left as it is,
//     and no leader is admitted;
//   - or the client's own, unchanged, which tells the client whether to run the function again.
//
// Call Check after the last read of the transaction and before its first write: Firestore allows no
// read after a write, and a Check that raises the mark writes. A read or a second Check after it
// fails with "firestore: read after write in transaction", at each leader's first transaction and
// never later. Check itself fails like that after a write. Nothing is written in either case.
//
// Check is one round trip. One call covers all writes of the transaction to the resource. The mark
// rises when the transaction commits, not before; in a read-only transaction it cannot rise, and
// the error says so. The function may run again: Check keeps no state.
func Check(tx *firestore.Transaction, doc *firestore.DocumentRef, w fence.Mark) error {
	stored, next, err := admit(tx, doc, w)
	if err != nil {
		return err
	}
	return raise(tx, doc, stored, next)
}

// admit reads the mark, and returns it as stored and as it must become.
func admit(tx *firestore.Transaction, doc *firestore.DocumentRef, w fence.Mark) (stored, next fence.Mark, err error) {
	snap, err := tx.Get(doc)
	if err == nil {
		if stored, err = decode(snap.Data()); err != nil {
			return stored, next, untrusted(doc, err)
		}
		// NotFound with a snapshot: the document does not exist
	} else if snap == nil || status.Code(err) != codes.NotFound {
		return stored, next, err
	}
	next, err = stored.Admit(w)
	return stored, next, err
}

func raise(tx *firestore.Transaction, doc *firestore.DocumentRef, stored, next fence.Mark) error {
	if next == stored {
		return nil
	}
	return tx.Set(doc, map[string]any{
		schemaField: markSchema, electionField: string(next.Election), tokenField: int64(next.Token),
	})
}

// markSchema is the version of a mark's document.
//
// Schema evolution: a program refuses a document with a version or a field that it does not know,
// because raising the mark would lose the field. So a field is never renamed, retyped or given
// another meaning, and a new field needs a new version. First all programs learn to read the new
// version, then one begins to write it when it raises a mark. All versions stay readable.
const markSchema int64 = 1

// The fields of a mark's document. All are always present.
const (
	schemaField   = "schema"
	electionField = "election"
	tokenField    = "fencingToken"
)

// decode reads a document strictly. A mark without a leader is refused as well: Check never writes
// it.
func decode(fields map[string]any) (fence.Mark, error) {
	schema, ok := fields[schemaField].(int64)
	if !ok || schema != markSchema {
		return fence.Mark{}, fmt.Errorf("field %s is not %d, the only version that this program knows", schemaField, markSchema)
	}
	election, ok := fields[electionField].(string)
	if !ok {
		return fence.Mark{}, fmt.Errorf("field %s is missing or not a string", electionField)
	}
	token, ok := fields[tokenField].(int64)
	if !ok {
		return fence.Mark{}, fmt.Errorf("field %s is missing or not an integer", tokenField)
	}
	if len(fields) > 3 {
		return fence.Mark{}, fmt.Errorf("one of the fields %.200q is unknown", slices.Sorted(maps.Keys(fields)))
	}
	m := fence.Mark{Election: leadership.Election(election), Token: leadership.Token(token)}
	_, err := fence.Mark{}.Admit(m)
	return m, err
}

func untrusted(doc *firestore.DocumentRef, why error) error {
	return &leadership.Error{Code: leadership.RecordCorrupt, Detail: fmt.Sprintf(
		"the document %s is not a valid mark of a resource (%v); no leader is admitted until an operator has repaired it, "+
			"with a fencing token no lower than any that has written", doc.Path, why)}
}

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

// Collection is where Doc has the marks.
const Collection = "fences"

// Doc is a document for the resource's mark: in Collection, by the resource's name, with "%2F" for a slash and "%25" for a percent sign. Any
// other document will do as well, as long as it is used for nothing else. What Firestore takes for no document's id, such as "", "." and more
// than 1,500 bytes, it refuses at the check.
func Doc(client *firestore.Client, resource string) *firestore.DocumentRef {
	return client.Collection(Collection).Doc(strings.NewReplacer("%", "%25", "/", "%2F").Replace(resource))
}

// Fenced is the function for RunTransaction that runs f if the leader that w names may write to the resource whose mark is in doc, and then
// raises the mark to w if it is lower, with what f writes. f may be anything that a transaction's function is: it reads, and then writes.
// It does not run for a leader that is refused; the error, which RunTransaction returns without trying again, is Check's.
//
// Fenced may be put into Fenced, for a transaction that writes to several resources.
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

// Check lets the transaction go on if the leader that w names may write to the resource whose mark is in doc, and raises the mark to w if it is
// lower. The caller returns the error from the transaction's function as it is; nothing is written then. It is
//
//   - a *leadership.Error as fence.Mark.Admit has it: TokenStale (stop acting as leader) or InvalidArgument;
//   - a *leadership.Error with RecordCorrupt, if there is a document and it is no mark. It stays as it is, and nobody is admitted;
//   - or the client's own, untouched, by which it knows whether to run the function again.
//
// Check comes after the last read of the transaction and before its first write, for Firestore lets no read follow a write, and a Check that raises
// the mark writes. A read after it, or a second Check, then fails with "firestore: read after write in transaction", at each leader's first
// transaction and never later. After a write Check itself fails so. Nothing is written in either case.
//
// Check is one round trip. One stands for all writes of the transaction to the resource. The mark rises when the transaction commits, and not
// before; in a read-only transaction it cannot, and the error says so. The function may run again: Check keeps nothing between two runs.
func Check(tx *firestore.Transaction, doc *firestore.DocumentRef, w fence.Mark) error {
	stored, next, err := admit(tx, doc, w)
	if err != nil {
		return err
	}
	return raise(tx, doc, stored, next)
}

// admit reads the mark, and returns it as it is and as it has to be.
func admit(tx *firestore.Transaction, doc *firestore.DocumentRef, w fence.Mark) (stored, next fence.Mark, err error) {
	snap, err := tx.Get(doc)
	if err == nil {
		if stored, err = decode(snap.Data()); err != nil {
			return stored, next, untrusted(doc, err)
		}
	} else if snap == nil || status.Code(err) != codes.NotFound { // there is a snapshot of a document that is not there
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
// How it may evolve. A program refuses a document of a version, or with a field, that it does not know: it would lose the field when it
// raises the mark. So a field is never renamed, retyped or given another meaning, and one more field means one more version.
// First every program learns to read the new version, then one begins to write it, when it raises a mark. Versions are read for ever.
const markSchema int64 = 1

// The fields of a mark's document, all of them always there.
const (
	schemaField   = "schema"
	electionField = "election"
	tokenField    = "fencingToken"
)

// decode reads a document strictly. One that says nothing of a leader is no mark either: Check never wrote it.
func decode(fields map[string]any) (fence.Mark, error) {
	schema, ok := fields[schemaField].(int64)
	if !ok || schema != markSchema {
		return fence.Mark{}, fmt.Errorf("field %s is not %d, the one version that this program knows", schemaField, markSchema)
	}
	election, ok := fields[electionField].(string)
	if !ok {
		return fence.Mark{}, fmt.Errorf("field %s is missing, or not a string", electionField)
	}
	token, ok := fields[tokenField].(int64)
	if !ok {
		return fence.Mark{}, fmt.Errorf("field %s is missing, or not an integer", tokenField)
	}
	if len(fields) > 3 {
		return fence.Mark{}, fmt.Errorf("of the fields %.200q one is unknown", slices.Sorted(maps.Keys(fields)))
	}
	m := fence.Mark{Election: leadership.Election(election), Token: leadership.Token(token)}
	_, err := fence.Mark{}.Admit(m)
	return m, err
}

func untrusted(doc *firestore.DocumentRef, why error) error {
	return &leadership.Error{Code: leadership.RecordCorrupt, Detail: fmt.Sprintf(
		"the document %s is not the mark of a resource, or cannot be trusted (%v); nobody is admitted until an operator has mended it, "+
			"with a fencing token no lower than any that has written", doc.Path, why)}
}

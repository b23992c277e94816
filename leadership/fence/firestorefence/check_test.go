package firestorefence_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"cloud.google.com/go/firestore"
	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"regent/leadership"
	"regent/leadership/fence"
	"regent/leadership/fence/fencetest"
	"regent/leadership/fence/firestorefence"
	"regent/store/storetest"
)

// function is a transaction function of RunTransaction.
type function = func(context.Context, *firestore.Transaction) error

// ways are the two ways to fence a transaction. Both protect equally.
var ways = map[string]func(*firestore.DocumentRef, fence.Mark, function) function{
	"Fenced": firestorefence.Fenced,
	"Check": func(doc *firestore.DocumentRef, w fence.Mark, f function) function {
		return func(ctx context.Context, tx *firestore.Transaction) error {
			if err := firestorefence.Check(tx, doc, w); err != nil {
				return err
			}
			return f(ctx, tx)
		}
	},
}

// eachWay runs a test for each of them.
func eachWay(t *testing.T, test func(*testing.T, func(*firestore.DocumentRef, fence.Mark, function) function)) {
	t.Parallel()
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, way)
		})
	}
}

func TestATransactionIsAFence(t *testing.T) {
	eachWay(t, func(t *testing.T, way func(*firestore.DocumentRef, fence.Mark, function) function) {
		fencetest.Run(t, func(t testing.TB) fencetest.Place { return place(newProject(t).client(t), way) })
	})
}

func place(c *firestore.Client, way func(*firestore.DocumentRef, fence.Mark, function) function) fencetest.Place {
	return fencetest.Place{
		Write: func(ctx context.Context, resource string, w fence.Mark, value int64) error {
			doc := firestorefence.Doc(c, resource)
			return c.RunTransaction(ctx, way(doc, w, put(c, doc.ID, value)))
		},
		Abandon: func(ctx context.Context, resource string, w fence.Mark, why error) error {
			return c.RunTransaction(ctx, way(firestorefence.Doc(c, resource), w, func(context.Context, *firestore.Transaction) error { return why }))
		},
		Read: func(t testing.TB, resource string) (fence.Mark, int64) {
			doc := firestorefence.Doc(c, resource)
			all, err := c.GetAll(t.Context(), []*firestore.DocumentRef{doc, c.Collection("data").Doc(doc.ID)})
			require.NoError(t, err)
			election, _ := all[0].Data()["election"].(string)
			token, _ := all[0].Data()["fencingToken"].(int64)
			value, _ := all[1].Data()["token"].(int64)
			return fence.Mark{Election: leadership.Election(election), Token: leadership.Token(token)}, value
		},
	}
}

// The central case: a check that finds its own token writes nothing, and still no later leader gets
// between it and its commit. The two transactions have only the mark in common.
func TestALaterLeaderDoesNotComeBetweenACheckAndItsCommit(t *testing.T) {
	eachWay(t, func(t *testing.T, way func(*firestore.DocumentRef, fence.Mark, function) function) {
		h := newProject(t)
		c, other := h.client(t), h.client(t)
		doc := firestorefence.Doc(c, "accounts")
		must(t, c, way(doc, lease(33), put(c, "before", 33)))
		var laterErr error
		err := c.RunTransaction(t.Context(), way(doc, lease(33), func(ctx context.Context, tx *firestore.Transaction) error {
			later := way(firestorefence.Doc(other, "accounts"), lease(34), put(other, "later", 34))
			laterErr = other.RunTransaction(t.Context(), later, firestore.MaxAttempts(1))
			return put(c, "earlier", 33)(ctx, tx)
		}))
		// a database with locks commits the earlier leader first, an optimistic one refuses it
		switch {
		case laterErr == nil:
			wantStale(t, err, 34)
			wantWritten(t, c, map[string]int64{"before": 33, "later": 34})
		case status.Code(laterErr) == codes.Aborted && err == nil:
			wantWritten(t, c, map[string]int64{"before": 33, "earlier": 33})
		default:
			t.Fatalf("the earlier leader got %v, the later one %v; want one through and the other refused", err, laterErr)
		}
		must(t, other, way(firestorefence.Doc(other, "accounts"), lease(34), put(other, "later", 34)))
		wantStale(t, c.RunTransaction(t.Context(), way(doc, lease(33), put(c, "before", 0))), 34)
	})
}

func TestALeaderThatLosesItsLockBeforeItsCommitIsRefused(t *testing.T) {
	eachWay(t, func(t *testing.T, way func(*firestore.DocumentRef, fence.Mark, function) function) {
		h := newProject(t)
		hand, other := h.rawClient(t), h.client(t)
		committing := func([]byte) {}
		// Firestore ends a transaction that is idle or blocks others, and answers its commit with
		// ABORTED. The emulator answers differently.
		c := h.client(t, onCommit(func(r *firestorepb.CommitRequest, commit func() error) error {
			committing(r.Transaction)
			err := commit()
			if status.Code(err) == codes.InvalidArgument && strings.Contains(err.Error(), "invalid or closed") {
				return status.Error(codes.Aborted, err.Error())
			}
			return err
		}))
		doc := firestorefence.Doc(c, "accounts")
		must(t, c, way(doc, lease(33), put(c, "before", 33)))
		committing = func(transaction []byte) {
			committing = func([]byte) {}
			assert.NoError(t, hand.Rollback(t.Context(), &firestorepb.RollbackRequest{Database: h.database(), Transaction: transaction}))
			must(t, other, way(firestorefence.Doc(other, "accounts"), lease(34), put(other, "later", 34)))
		}
		runs := 0
		err := c.RunTransaction(t.Context(), func(ctx context.Context, tx *firestore.Transaction) error {
			runs++
			return way(doc, lease(33), put(c, "earlier", 33))(ctx, tx)
		})
		wantStale(t, err, 34)
		if runs != 2 {
			t.Errorf("the function ran %d times, want 2: its commit was to be aborted, and its second check to refuse", runs)
		}
		wantWritten(t, c, map[string]int64{"before": 33, "later": 34})
	})
}

func TestOneCheckOfOneReadIsEnoughForAThousandWrites(t *testing.T) {
	eachWay(t, func(t *testing.T, way func(*firestore.DocumentRef, fence.Mark, function) function) {
		rpcs, writes := new(storetest.RPCs), 0
		c := newProject(t).client(t, grpc.WithStatsHandler(rpcs), onCommit(func(r *firestorepb.CommitRequest, commit func() error) error {
			writes = len(r.Writes)
			return commit()
		}))
		doc := firestorefence.Doc(c, "accounts")
		thousand := func(_ context.Context, tx *firestore.Transaction) error {
			for range 1000 {
				if err := tx.Set(c.Collection("data").NewDoc(), map[string]any{"token": 33}); err != nil {
					return err
				}
			}
			return nil
		}
		for _, tt := range []struct {
			what   string
			token  leadership.Token
			rpcs   []string
			writes int
		}{
			{"a leader's first", 33, []string{"BeginTransaction", "BatchGetDocuments", "Commit"}, 1001},
			{"its second", 33, []string{"BeginTransaction", "BatchGetDocuments", "Commit"}, 1000},
			{"a former leader's", 32, []string{"BeginTransaction", "BatchGetDocuments", "Rollback"}, 0},
		} {
			rpcs.Take()
			writes = 0
			err := c.RunTransaction(t.Context(), way(doc, lease(tt.token), thousand))
			if (err != nil) != (tt.writes == 0) {
				t.Errorf("%s: %v", tt.what, err)
			}
			if diff := cmp.Diff(tt.rpcs, rpcs.Take()); diff != "" || writes != tt.writes {
				t.Errorf("%s: %d writes, want %d (-want +got):\n%s", tt.what, writes, tt.writes, diff)
			}
		}
	})
}

func TestFencedInFencedGuardsTwoResourcesOfTwoElections(t *testing.T) {
	t.Parallel()
	c := newProject(t).client(t)
	accounts, ledger := firestorefence.Doc(c, "accounts"), firestorefence.Doc(c, "ledger")
	both := func(first, second leadership.Token, f function) function {
		return firestorefence.Fenced(accounts, lease(first), firestorefence.Fenced(ledger, fence.Mark{Election: "books", Token: second}, f))
	}
	must(t, c, both(33, 7, put(c, "a", 1)))
	wantFields(t, accounts, map[string]any{"schema": int64(1), "election": "jobs", "fencingToken": int64(33)})
	wantFields(t, ledger, map[string]any{"schema": int64(1), "election": "books", "fencingToken": int64(7)})
	wantStale(t, c.RunTransaction(t.Context(), both(32, 8, put(c, "a", 2))), 33)
	wantStale(t, c.RunTransaction(t.Context(), both(34, 6, put(c, "a", 2))), 7)
	wantWritten(t, c, map[string]int64{"a": 1})
	wantFields(t, accounts, map[string]any{"schema": int64(1), "election": "jobs", "fencingToken": int64(33)})
}

func TestInvalidMarkIsRefusedByNameAndLeftAsItIs(t *testing.T) {
	eachWay(t, func(t *testing.T, way func(*firestore.DocumentRef, fence.Mark, function) function) {
		c := newProject(t).client(t)
		for what, tt := range map[string]struct {
			change map[string]any // nil removes a field
			says   string
		}{
			"no schema":            {map[string]any{"schema": nil}, "schema"},
			"a later schema":       {map[string]any{"schema": 2}, "schema"},
			"no election":          {map[string]any{"election": nil}, "election"},
			"a number for a name":  {map[string]any{"election": 1}, "election"},
			"no token":             {map[string]any{"fencingToken": nil}, "fencingToken"},
			"a token in words":     {map[string]any{"fencingToken": "33"}, "fencingToken"},
			"a token with a point": {map[string]any{"fencingToken": 33.0}, "fencingToken"},
			"a token of 2^53":      {map[string]any{"fencingToken": int64(1 << 53)}, "not 9007199254740992"},
			"one field more":       {map[string]any{"balance": 5}, "balance"},
			"something else":       {map[string]any{"schema": nil, "election": nil, "fencingToken": nil, "balance": 5}, "schema"},
		} {
			fields := map[string]any{"schema": 1, "election": "jobs", "fencingToken": 33}
			for name, value := range tt.change {
				fields[name] = value
				if value == nil {
					delete(fields, name)
				}
			}
			doc := firestorefence.Doc(c, what)
			_, err := doc.Set(t.Context(), fields)
			require.NoError(t, err)
			before := updated(t, doc)
			err = c.RunTransaction(t.Context(), way(doc, lease(leadership.MaxToken), put(c, "a", 1)))
			if !errors.Is(err, leadership.RecordCorrupt) || !strings.Contains(err.Error(), doc.Path) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%s: got %v, want RECORD_CORRUPT that names the document and says %s", what, err, tt.says)
			}
			assert.True(t, updated(t, doc).Equal(before), "%s: the document was written", what)
		}
		wantWritten(t, c, map[string]int64{})
	})
}

func TestEachResourceHasADocumentOfItsOwn(t *testing.T) {
	t.Parallel()
	c := newProject(t).client(t)
	seen := map[string]string{}
	for _, resource := range []string{"a", "a/b", "a/b/c", "a%2Fb", "a%b", "ä ö", "/", "%"} {
		doc := firestorefence.Doc(c, resource)
		if other, ok := seen[doc.ID]; ok {
			t.Errorf("%q and %q share a document", resource, other)
		}
		seen[doc.ID] = resource
		must(t, c, firestorefence.Fenced(doc, lease(33), put(c, "a", 1)))
	}
	docs, err := c.Collection(firestorefence.Collection).Documents(t.Context()).GetAll()
	if err != nil || len(docs) != len(seen) {
		t.Errorf("there are %d marks, %v; want %d", len(docs), err, len(seen))
	}
	for _, resource := range []string{"", ".", "..", "__x__", strings.Repeat("a", 1501)} {
		err := c.RunTransaction(t.Context(), firestorefence.Fenced(firestorefence.Doc(c, resource), lease(33), put(c, "b", 1)))
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("%.20q: got %v, want INVALID_ARGUMENT", resource, err)
		}
	}
	wantWritten(t, c, map[string]int64{"a": 1})
}

package spannerfence_test

import (
	"context"
	"errors"
	"hash/crc32"
	"maps"
	"strings"
	"testing"

	"cloud.google.com/go/spanner"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"regent/leadership"
	"regent/leadership/fence"
	"regent/leadership/fence/fencetest"
	"regent/leadership/fence/spannerfence"
	"regent/store/storetest"
)

// kinds are the two ways to keep marks. Both protect equally.
var kinds = map[string]spannerfence.Table{"exclusive": {}, "shared": {Shared: true}}

func TestTableIsAFence(t *testing.T) {
	t.Parallel()
	for name, table := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fencetest.Run(t, func(t testing.TB) fencetest.Place { return place(newDatabase(t).client(t), table) })
		})
	}
}

func place(c *spanner.Client, table spannerfence.Table) fencetest.Place {
	id := func(resource string) int64 { return int64(crc32.ChecksumIEEE([]byte(resource))) }
	write := func(ctx context.Context, resource string, w fence.Mark, value int64, end error) error {
		_, err := c.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			if err := table.Check(ctx, tx, resource, w); err != nil {
				return err
			}
			if end != nil {
				return end
			}
			return tx.BufferWrite([]*spanner.Mutation{data(id(resource), leadership.Token(value))})
		})
		return err
	}
	return fencetest.Place{
		Write: func(ctx context.Context, resource string, w fence.Mark, value int64) error {
			return write(ctx, resource, w, value, nil)
		},
		Abandon: func(ctx context.Context, resource string, w fence.Mark, why error) error {
			return write(ctx, resource, w, 0, why)
		},
		Read: func(t testing.TB, resource string) (fence.Mark, int64) {
			return marks(t, c)[resource], int64(written(t, c)[id(resource)])
		},
	}
}

// The central case: a check that finds its own token writes nothing, and still loses to a later
// leader that raises the mark before it commits.
func TestALeaderWhoseMarkRisesBetweenItsCheckAndItsCommitIsRefused(t *testing.T) {
	t.Parallel()
	for name, table := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newDatabase(t).client(t)
			must(t, c, writes(table, 33, 1))
			runs := 0
			_, err := c.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
				runs++
				err := writes(table, 33, 2)(ctx, tx)
				if runs == 1 && err == nil { // admitted and paused; meanwhile:
					must(t, c, writes(table, 34, 2))
				}
				return err
			})
			wantStale(t, err, 34)
			if runs != 2 {
				t.Errorf("the function ran %d times, want 2: its commit was to be aborted, and its second check to refuse", runs)
			}
			assert.Empty(t, cmp.Diff(map[int64]leadership.Token{1: 33, 2: 34}, written(t, c)), "what was written (-want +got)")
		})
	}
}

func wantStale(t *testing.T, err error, current leadership.Token) {
	t.Helper()
	var refused *leadership.Error
	if !errors.As(err, &refused) || refused.Code != leadership.TokenStale {
		t.Fatalf("got %v, want TOKEN_STALE", err)
	}
	if refused.Lease.Token != current {
		t.Errorf("the refusal names token %d, want %d", refused.Lease.Token, current)
	}
}

// The emulator locks a whole database. What Cloud Spanner relies on is in the request.
func TestTheMarkIsReadInTheTransactionAndHeldUntilItsEnd(t *testing.T) {
	t.Parallel()
	for name, hint := range map[string]string{"exclusive": "@{LOCK_SCANNED_RANGES=exclusive} ", "shared": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sent := new(statements)
			c := newDatabase(t).client(t, sent.option())
			must(t, c, writes(kinds[name], 33, 1))
			sent.sent = nil
			must(t, c, writes(kinds[name], 33, 2))
			require.Len(t, sent.sent, 1, "statements were sent")
			got := sent.sent[0]
			if want := hint + "SELECT Election, FencingToken FROM `Fences` WHERE Resource = @resource"; got.Sql != want {
				t.Errorf("got %s\nwant %s", got.Sql, want)
			}
			if got.Transaction.GetBegin().GetReadWrite() == nil {
				t.Errorf("it began %v, want a read-write transaction", got.Transaction)
			}
		})
	}
}

func TestOneCheckOfOneStatementIsEnoughForAThousandWrites(t *testing.T) {
	t.Parallel()
	rpcs := new(storetest.RPCs)
	c := newDatabase(t).client(t, grpc.WithStatsHandler(rpcs))
	written(t, c) // the client has its session then
	thousand := func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		if err := (spannerfence.Table{}).Check(ctx, tx, "accounts", lease(33)); err != nil {
			return err
		}
		var all []*spanner.Mutation
		for id := range int64(1000) {
			all = append(all, data(id, 33))
		}
		return tx.BufferWrite(all)
	}
	for _, tt := range []struct {
		what string
		f    func(context.Context, *spanner.ReadWriteTransaction) error
		want []string
	}{
		{"a leader's first", thousand, []string{"ExecuteStreamingSql", "ExecuteSql", "Commit"}},
		{"its second", thousand, []string{"ExecuteStreamingSql", "Commit"}},
		{"a former leader's", writes(spannerfence.Table{}, 32, 1), []string{"ExecuteStreamingSql", "Rollback"}},
	} {
		rpcs.Take()
		_, err := c.ReadWriteTransaction(t.Context(), tt.f)
		if (err != nil) != (tt.what == "a former leader's") {
			t.Errorf("%s: %v", tt.what, err)
		}
		assert.Empty(t, cmp.Diff(tt.want, rpcs.Take()), "%s (-want +got)", tt.what)
	}
	assert.Len(t, written(t, c), 1000, "rows were written")
}

func TestInvalidMarkIsRefusedByNameAndLeftAsItIs(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		columns, values, says string
	}{
		"no token":               {"Election STRING(MAX), FencingToken INT64", "'jobs', NULL", "not 0"},
		"no election":            {"Election STRING(MAX), FencingToken INT64", "NULL, 33", "needs a name"},
		"a token of 2^53":        {"Election STRING(MAX), FencingToken INT64", "'jobs', 9007199254740992", "not 9007199254740992"},
		"a token that is a text": {"Election STRING(MAX), FencingToken STRING(MAX)", "'jobs', '33'", "STRING"},
		"a number for a name":    {"Election INT64, FencingToken INT64", "1, 33", "INT64"},
		"a fraction of a token":  {"Election STRING(MAX), FencingToken FLOAT64", "'jobs', 33.5", "FLOAT64"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := newDatabase(t, "CREATE TABLE Fences (Resource STRING(MAX), "+tt.columns+") PRIMARY KEY (Resource)").client(t)
			must(t, c, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
				_, err := tx.Update(ctx, spanner.NewStatement("INSERT INTO Fences (Resource, Election, FencingToken) VALUES ('accounts', "+tt.values+")"))
				return err
			})
			row := func() string {
				r, err := c.Single().ReadRow(t.Context(), "Fences", spanner.Key{"accounts"}, []string{"Election", "FencingToken"})
				require.NoError(t, err)
				return r.String()
			}
			before := row()
			_, err := c.ReadWriteTransaction(t.Context(), writes(spannerfence.Table{}, leadership.MaxToken, 1))
			if !errors.Is(err, leadership.RecordCorrupt) || !strings.Contains(err.Error(), `"accounts"`) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want RECORD_CORRUPT that names the resource and says %s", err, tt.says)
			}
			if len(written(t, c)) != 0 {
				t.Error("the transaction has written")
			}
			if now := row(); now != before {
				t.Errorf("the row was %s and is %s", before, now)
			}
		})
	}
}

func TestATableOfManyRowsForAResourceIsRefused(t *testing.T) {
	t.Parallel()
	c := newDatabase(t, "CREATE TABLE Fences (Resource STRING(MAX), Election STRING(MAX), FencingToken INT64) PRIMARY KEY (Resource, Election)").client(t)
	must(t, c, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		_, err := tx.Update(ctx, spanner.NewStatement("INSERT INTO Fences (Resource, Election, FencingToken) VALUES ('accounts', 'jobs', 1), ('accounts', 'other', 34)"))
		return err
	})
	_, err := c.ReadWriteTransaction(t.Context(), writes(spannerfence.Table{}, 33, 1))
	if !errors.Is(err, leadership.RecordCorrupt) || !strings.Contains(err.Error(), "2 rows") {
		t.Errorf("got %v, want RECORD_CORRUPT that counts 2 rows", err)
	}
}

func TestATableOfAnotherNameIsUsed(t *testing.T) {
	t.Parallel()
	// "Select" is a keyword: names are quoted
	for _, name := range []string{"Marks_2", "Select", "Fences"} {
		c := newDatabase(t, strings.Replace(spannerfence.DDL, "Fences", "`"+name+"`", 1)).client(t)
		must(t, c, writes(spannerfence.Table{Name: name}, 34, 1))
		_, err := c.ReadWriteTransaction(t.Context(), writes(spannerfence.Table{Name: name, Shared: true}, 33, 2))
		wantStale(t, err, 34)
	}
}

func TestInvalidArgumentNamesTheField(t *testing.T) {
	t.Parallel()
	c := newDatabase(t).client(t)
	must(t, c, writes(spannerfence.Table{}, 33, 1))
	long := strings.Repeat("ä", spannerfence.MaxResource)
	for _, tt := range []struct {
		table, resource string
		w               fence.Mark
		field           string
	}{
		{"", "", lease(33), "resource"},
		{"", long + "a", lease(33), "resource"},
		{"", "a\xff", lease(33), "resource"},
		{"", long, lease(33), ""},
		{"Fences`; DROP TABLE Data; --", "accounts", lease(33), "table"},
		{"Fences WHERE TRUE", "accounts", lease(33), "table"},
		{"Fences.", "accounts", lease(33), "table"},
		{"Fénces", "accounts", lease(33), "table"},
		{strings.Repeat("F", 129), "accounts", lease(33), "table"},
	} {
		_, err := c.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			return spannerfence.Table{Name: tt.table}.Check(ctx, tx, tt.resource, tt.w)
		})
		var refused *leadership.Error
		if errors.As(err, &refused); tt.field == "" && err == nil {
			continue
		}
		if refused == nil || refused.Code != leadership.InvalidArgument || refused.Field != tt.field {
			t.Errorf("table %.40q, resource %.20q, %v: got %v, want INVALID_ARGUMENT of %q", tt.table, tt.resource, tt.w, err, tt.field)
		}
	}
	want := map[string]fence.Mark{"accounts": lease(33), long: lease(33)}
	if got := marks(t, c); !maps.Equal(got, want) {
		t.Errorf("marks %v, want %v", got, want)
	}
}

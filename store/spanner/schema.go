package spanner

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/spanner"
	"google.golang.org/grpc/codes"

	"regent/leadership"
)

// SchemaVersion is the version of the tables that this package reads and writes, and of each row of
// Leadership. Rows of another version are refused.
const SchemaVersion = 1

//go:embed schema.sql
var schemaSQL string

// statements returns the DDL statements of a file such as schema.sql.
func statements(sql string) []string {
	var code strings.Builder
	for line := range strings.Lines(sql) {
		if !strings.HasPrefix(line, "--") {
			code.WriteString(line)
		}
	}
	var all []string
	for s := range strings.SplitSeq(code.String(), ";") {
		if s = strings.TrimSpace(s); s != "" {
			all = append(all, s)
		}
	}
	return all
}

// checkSchema returns the store's time, or an error if this package cannot work with the database.
func checkSchema(ctx context.Context, client *spanner.Client, database string) (time.Time, error) {
	v, err := readVersions(ctx, client)
	switch {
	case spanner.ErrCode(err) == codes.NotFound:
		err = fmt.Errorf("spanner: %s does not exist; create the database, then its tables with: regent admin migrate --store spanner:%[1]s: %w", database, err)
	case err != nil:
		err = failure(ctx, "open", database, leadership.StoreUnavailable, err)
	case v.Version == 0:
		err = fmt.Errorf("spanner: %s has no tables for leases; create them with: regent admin migrate --store spanner:%[1]s", database)
	case SchemaVersion < v.Lowest || SchemaVersion > v.Version:
		err = fmt.Errorf("spanner: %s has schema version %d, and this program knows version %d: use the version of regent that made it, or a newer one",
			database, v.Version, SchemaVersion)
	}
	return v.at, err
}

type versions struct {
	Version int64     `spanner:"version"` // 0 if there is none
	Lowest  int64     `spanner:"lowest"`  // of a program that may use the database; the highest is Version
	at      time.Time // when it was read, by the store's time
}

// readVersions reads the database's schema versions. Migrate writes them last: if there are any,
// all tables are there.
func readVersions(ctx context.Context, client *spanner.Client) (v versions, err error) {
	query := spanner.NewStatement("SELECT version, lowest FROM LeadershipSchema")
	tx := client.Single()
	err = tx.QueryWithOptions(ctx, query, spanner.QueryOptions{RequestTag: tag("open")}).Do(func(r *spanner.Row) error { return r.ToStruct(&v) })
	switch {
	case spanner.ErrCode(err) == codes.InvalidArgument:
		return versions{}, nil // the statement is valid, so the table is missing
	case err != nil:
		return versions{}, err
	}
	v.at, err = tx.Timestamp()
	return v, err
}

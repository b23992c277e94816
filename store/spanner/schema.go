package spanner

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"cloud.google.com/go/spanner"
	"google.golang.org/grpc/codes"

	"regent/leadership"
)

// SchemaVersion is the version of the tables that this package reads and writes, and of each row of
// Leadership that it writes. Rows of the version before are read, and rewritten as they change;
// tables of that version are for Migrate to change.
const (
	SchemaVersion = 2
	schemaBefore  = 1
)

//go:embed schema.sql
var schemaSQL string

// statements are the DDL statements of a file like schema.sql.
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

// checkSchema returns an error unless this package can work with the database.
func checkSchema(ctx context.Context, client *spanner.Client, database string) error {
	version, err := schemaVersion(ctx, client)
	switch {
	case spanner.ErrCode(err) == codes.NotFound:
		return fmt.Errorf("spanner: %s does not exist; create the database, then its tables with: regent migrate --store spanner:%[1]s: %w", database, err)
	case err != nil:
		return failure(ctx, "open", database, leadership.StoreUnavailable, err)
	case version == 0:
		return fmt.Errorf("spanner: %s has no tables for leases; create them with: regent migrate --store spanner:%[1]s", database)
	case version != SchemaVersion:
		return fmt.Errorf("spanner: %s has schema version %d, and this program needs version %d; change it with: regent migrate --store spanner:%[1]s, or use the version of regent that matches",
			database, version, SchemaVersion)
	}
	return nil
}

// schemaVersion reads the database's schema version; 0 if there is none. Migrate writes it last: if
// there is one, all tables are there.
func schemaVersion(ctx context.Context, client *spanner.Client) (version int64, err error) {
	query := spanner.NewStatement("SELECT version FROM LeadershipSchema")
	rows := client.Single().QueryWithOptions(ctx, query, spanner.QueryOptions{RequestTag: tag("open")})
	err = rows.Do(func(r *spanner.Row) error { return r.Columns(&version) })
	if spanner.ErrCode(err) == codes.InvalidArgument { // the statement is right, so it is the table that is missing
		return 0, nil
	}
	return version, err
}

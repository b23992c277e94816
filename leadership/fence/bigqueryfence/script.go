package bigqueryfence

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"regent/leadership/fence"
)

// staleText and unguardedText are what the assertions say. BigQuery repeats them in its error.
const (
	staleText     = "regent TOKEN_STALE: a later leader has written; stop acting as leader"
	unguardedText = "regent: the resource has no mark of this election; run Setup of bigqueryfence once"
)

var (
	tableName   = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+){1,2}$`)
	transaction = regexp.MustCompile(`(?i)\b(begin|commit|rollback)\s+transaction\b|\b(commit|rollback)\s*(;|$)`)
)

// Setup returns the script that makes the table of marks, "dataset.table" or
// "project.dataset.table", if it is not there, and the resource's row in it, if it is not there.
// Run it alone: two that run at once may make the row twice, and then each Script fails.
func Setup(table string) (string, error) {
	if !tableName.MatchString(table) {
		return "", refuseTable(table)
	}
	return strings.ReplaceAll("CREATE TABLE IF NOT EXISTS `TABLE` (\n"+
		"  resource STRING NOT NULL, election STRING NOT NULL, fencing_token INT64 NOT NULL\n"+
		");\n"+
		"INSERT INTO `TABLE` (resource, election, fencing_token)\n"+
		"  SELECT @regent_resource, @regent_election, 0 FROM (SELECT 1)\n"+
		"  WHERE NOT EXISTS (SELECT 1 FROM `TABLE` WHERE resource = @regent_resource);\n", "TABLE", table), nil
}

// Script returns the statements in a transaction that commits only if no later leader has written.
// The statements must not begin or end a transaction. They may declare variables, and may have
// named parameters besides those of Parameters.
func Script(table, statements string) (string, error) {
	switch {
	case !tableName.MatchString(table):
		return "", refuseTable(table)
	case strings.TrimSpace(statements) == "":
		return "", errors.New("bigqueryfence: there are no statements to guard")
	case transaction.MatchString(statements):
		return "", errors.New("bigqueryfence: the statements begin or end a transaction; leave that to the script, which guards them in one of its own")
	}
	guard := strings.ReplaceAll("BEGIN TRANSACTION;\n"+
		"ASSERT (SELECT COUNT(*) FROM `TABLE`\n"+
		"  WHERE resource = @regent_resource AND election = @regent_election) = 1\n"+
		"  AS '"+unguardedText+"';\n"+
		"UPDATE `TABLE` SET fencing_token = @regent_fencing_token\n"+
		"  WHERE resource = @regent_resource AND election = @regent_election\n"+
		"  AND fencing_token <= @regent_fencing_token;\n"+
		"ASSERT @@row_count = 1\n"+
		"  AS '"+staleText+"';\n", "TABLE", table)
	return guard + "BEGIN\n" + strings.TrimRight(strings.TrimSpace(statements), ";") + ";\nEND;\nCOMMIT TRANSACTION;\n", nil
}

func refuseTable(table string) error {
	return fmt.Errorf("bigqueryfence: %.100q is no table; name it as dataset.table or project.dataset.table, without backquotes", table)
}

// Parameters are the named query parameters of Setup and Script. The error is that of a mark that
// names no leader.
func Parameters(resource string, w fence.Mark) (map[string]any, error) {
	if _, err := (fence.Mark{}).Admit(w); err != nil {
		return nil, err
	}
	return map[string]any{"regent_resource": resource, "regent_election": string(w.Election), "regent_fencing_token": int64(w.Token)}, nil
}

// Stale reports whether a script has failed because a later leader has written. Its leader must
// stop. After any other error the leader may run the script again, if its statements may run twice:
// it is not always known whether it was committed.
func Stale(err error) bool { return err != nil && strings.Contains(err.Error(), staleText) }

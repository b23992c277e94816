package bigqueryfence

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"regent/leadership/fence"
)

// What the assertions say. BigQuery repeats it in its error.
const (
	staleText     = "regent TOKEN_STALE: a later token has written; stop unless renewal brings a newer one"
	unguardedText = "regent: the resource has no mark of this election; run Setup of bigqueryfence once"
	severalText   = "regent: the resource has several marks; delete all but one of the highest token"
)

var (
	tableName   = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+){1,2}$`)
	transaction = regexp.MustCompile(`(?i)\b(begin|commit|rollback)\s+transaction\b|\b(commit|rollback)\s*(;|$)`)
	leave       = regexp.MustCompile(`(?i)\breturn\b`)
	// quoted matches strings, names in backquotes and comments.
	quoted = regexp.MustCompile(`(?s)'''(\\.|[^\\])*?'''|"""(\\.|[^\\])*?"""|'(\\.|[^'\\\r\n])*'|"(\\.|[^"\\\r\n])*"` +
		`|\x60(\\.|[^\x60\\\r\n])*\x60|(--|#)[^\r\n]*|/\*.*?\*/`)
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
// The statements must not begin or end a transaction, nor RETURN: BigQuery would roll back, and the
// job would succeed. They may declare variables, and may have named parameters besides those of
// Parameters.
func Script(table, statements string) (string, error) {
	statements = strings.TrimRight(strings.TrimSpace(statements), ";")
	code := strings.TrimSpace(quoted.ReplaceAllString(statements, " "))
	switch {
	case !tableName.MatchString(table):
		return "", refuseTable(table)
	case code == "":
		return "", errors.New("bigqueryfence: there are no statements to guard")
	case transaction.MatchString(statements), transaction.MatchString(code):
		return "", errors.New("bigqueryfence: the statements begin or end a transaction; leave that to the script, which guards them in one of its own")
	case leave.MatchString(code):
		return "", errors.New("bigqueryfence: the statements RETURN, so that the script would end without its COMMIT and write nothing; use IF or LEAVE, and put a name in backquotes")
	}
	if !strings.HasSuffix(code, ";") {
		statements += "\n;" // on a line of its own, for a comment may come before it
	}
	guard := strings.ReplaceAll("BEGIN TRANSACTION;\n"+
		"ASSERT (SELECT COUNT(*) FROM `TABLE`\n"+
		"  WHERE resource = @regent_resource AND election = @regent_election) <= 1\n"+
		"  AS '"+severalText+"';\n"+
		"ASSERT (SELECT COUNT(*) FROM `TABLE`\n"+
		"  WHERE resource = @regent_resource AND election = @regent_election) = 1\n"+
		"  AS '"+unguardedText+"';\n"+
		"UPDATE `TABLE` SET fencing_token = @regent_fencing_token\n"+
		"  WHERE resource = @regent_resource AND election = @regent_election\n"+
		"  AND fencing_token <= @regent_fencing_token;\n"+
		"ASSERT @@row_count = 1\n"+
		"  AS '"+staleText+"';\n", "TABLE", table)
	return guard + "BEGIN\n" + statements + "\nEND;\nCOMMIT TRANSACTION;\n", nil
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

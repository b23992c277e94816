package bigqueryfence_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/fence"
	"regent/leadership/fence/bigqueryfence"
)

var mark = fence.Mark{Election: "planner", Token: 34}

func Example() {
	script, err := bigqueryfence.Script("ops.fences", "DECLARE today DATE DEFAULT CURRENT_DATE();\nINSERT INTO ops.plans (day, plan) VALUES (today, @plan)")
	if err != nil {
		panic(err)
	}
	fmt.Print(script)
	// Output:
	// BEGIN TRANSACTION;
	// ASSERT (SELECT COUNT(*) FROM `ops.fences`
	//   WHERE resource = @regent_resource AND election = @regent_election) <= 1
	//   AS 'regent: the resource has several marks; delete all but one of the highest token';
	// ASSERT (SELECT COUNT(*) FROM `ops.fences`
	//   WHERE resource = @regent_resource AND election = @regent_election) = 1
	//   AS 'regent: the resource has no mark of this election; run Setup of bigqueryfence once';
	// UPDATE `ops.fences` SET fencing_token = @regent_fencing_token
	//   WHERE resource = @regent_resource AND election = @regent_election
	//   AND fencing_token <= @regent_fencing_token;
	// ASSERT @@row_count = 1
	//   AS 'regent TOKEN_STALE: a later token has written; stop unless renewal brings a newer one';
	// BEGIN
	// DECLARE today DATE DEFAULT CURRENT_DATE();
	// INSERT INTO ops.plans (day, plan) VALUES (today, @plan)
	// ;
	// END;
	// COMMIT TRANSACTION;
}

func TestTheStatementsRunBehindTheAssertionsInOneTransaction(t *testing.T) {
	t.Parallel()
	for _, statements := range []string{"DELETE FROM t WHERE TRUE", "DELETE FROM t WHERE TRUE;", " DELETE FROM t WHERE TRUE ;\n", "DELETE FROM t WHERE TRUE -- all;", "DELETE FROM t WHERE TRUE; # all"} {
		script, err := bigqueryfence.Script("p-1.d.t", statements)
		require.NoError(t, err)
		last := -1
		for _, part := range []string{
			"BEGIN TRANSACTION;", ") <= 1\n  AS 'regent: the resource has several marks", ") = 1\n  AS 'regent: the resource has no mark", "UPDATE `p-1.d.t` SET fencing_token = ", "fencing_token <= @", "ASSERT @@row_count = 1", "TOKEN_STALE", "DELETE FROM t", "\nEND;\n", "COMMIT TRANSACTION;",
		} {
			at := strings.Index(script, part)
			if at <= last || strings.Count(script, part) != 1 {
				t.Errorf("%q stands at %d, after %d, in\n%s", part, at, last, script)
			}
			last = at
		}
		// without what a comment swallows, the statement ends in one semicolon
		if plain := regexp.MustCompile(`(--|#).*`).ReplaceAllString(script, ""); !regexp.MustCompile(`WHERE TRUE\s*;\s*END;`).MatchString(plain) {
			t.Errorf("%q is not ended once in\n%s", statements, script)
		}
	}
}

func TestReturnIsRefusedUnlessItIsQuoted(t *testing.T) {
	t.Parallel()
	for statements, refused := range map[string]bool{
		"IF @done THEN RETURN; END IF; DELETE FROM t WHERE TRUE": true,
		"return":                             true,
		"SELECT '\\'' ; RETURN; SELECT ''":   true,
		"SELECT '''it's''' ; RETURN -- it's": true,
		"SELECT r\"\\\" # \"; RETURN":        true,
		"/* it's */ RETURN /* it's */":       true,
		"SELECT 'no return', \"return\", `return`, '''\nreturn's''', \"\"\"return\"\"\"": false,
		"DELETE FROM t WHERE TRUE -- return;\n# return\n/* return\n */":                  false,
		"CREATE TEMP FUNCTION f() RETURNS INT64 AS (1); SELECT f() AS returned":          false,
	} {
		if script, err := bigqueryfence.Script("d.t", statements); (err != nil) != refused {
			t.Errorf("%s: refused with %v, want %t\n%s", statements, err, refused, script)
		}
	}
}

func TestEachParameterOfAScriptIsGiven(t *testing.T) {
	t.Parallel()
	given, err := bigqueryfence.Parameters("plans", mark)
	if err != nil || given["regent_resource"] != "plans" || given["regent_election"] != "planner" || given["regent_fencing_token"] != int64(34) {
		t.Fatalf("got %v, %v", given, err)
	}
	script, _ := bigqueryfence.Script("d.t", "SELECT 1")
	setup, err := bigqueryfence.Setup("d.t")
	require.NoError(t, err)
	var used []string
	for _, m := range regexp.MustCompile(`@(regent_\w+)`).FindAllStringSubmatch(script+setup, -1) {
		if used = append(used, m[1]); given[m[1]] == nil {
			t.Errorf("@%s is not given", m[1])
		}
	}
	for name := range given {
		assert.True(t, slices.Contains(used, name), "@%s is not used", name)
	}
	_, err = bigqueryfence.Parameters("plans", fence.Mark{Election: "planner"})
	assert.ErrorIs(t, err, leadership.InvalidArgument, "without a token")
}

func TestWhatWouldBreakOutOfTheScriptIsRefused(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"", "t", "d.t`; DROP TABLE x; --", "`d.t`", "a.b.c.d", "d..t", "d.t\n", "d.*"} {
		if script, err := bigqueryfence.Script(table, "SELECT 1"); err == nil {
			t.Errorf("table %q: %s", table, script)
		}
		if script, err := bigqueryfence.Setup(table); err == nil {
			t.Errorf("table %q: %s", table, script)
		}
	}
	for _, statements := range []string{"", " \n", "COMMIT", "DELETE FROM t WHERE TRUE; commit ; SELECT 1", "begin  transaction; SELECT 1", "ROLLBACK TRANSACTION", "COMMIT -- now\n;", "-- nothing"} {
		if script, err := bigqueryfence.Script("d.t", statements); err == nil {
			t.Errorf("statements %q: %s", statements, script)
		}
	}
}

func TestOnlyTheFailedAssertionOfTheMarkIsStale(t *testing.T) {
	t.Parallel()
	script, _ := bigqueryfence.Script("d.t", "SELECT 1")
	said := regexp.MustCompile(`AS '([^']*)'`).FindAllStringSubmatch(script, -1)
	if len(said) != 3 {
		t.Fatal(script)
	}
	for text, want := range map[string]bool{
		"googleapi: Error 400: Query error: " + said[2][1] + " at [9:1]":                 true,
		"googleapi: Error 400: Query error: " + said[1][1] + " at [5:1]":                 false,
		"googleapi: Error 400: Query error: " + said[0][1] + " at [2:1]":                 false,
		"googleapi: Error 400: Transaction is aborted due to concurrent update, aborted": false,
	} {
		if got := bigqueryfence.Stale(fmt.Errorf("run: %w", errors.New(text))); got != want {
			t.Errorf("%s: stale %t, want %t", text, got, want)
		}
	}
	assert.False(t, bigqueryfence.Stale(nil), "no error is stale")
}

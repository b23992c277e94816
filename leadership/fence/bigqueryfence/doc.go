// Package bigqueryfence keeps the scripts of former leaders from changing BigQuery tables.
//
// It makes text and needs no client: Script puts the caller's statements into one transaction of
// one query, behind an UPDATE that raises the mark of the resource and an ASSERT that it did. If a
// later leader has raised the mark further, the ASSERT fails, the query fails, and BigQuery rolls
// its transaction back. Run the text with Parameters as named query parameters, and ask Stale about
// the error.
//
// The mark is a row in a table of the caller's, which has to be there before the first script: run
// Setup once for each resource, with the same parameters' resource and election. A script never
// inserts the row. BigQuery lets transactions that only insert run side by side, but cancels one of
// two that update the same table: so of two leaders whose scripts meet, one is cancelled, and may
// run its script again.
//
// All resources of one table are cancelled by one another so. Scripts that often run side by side
// need marks in tables of their own.
//
// # What was tried
//
// BigQuery has no emulator, and this package was not run against BigQuery. Its tests hold the text
// to its form: what stands in the transaction, in which order, and with which parameters. That
// ASSERT, @@row_count, the rollback and the conflict of two updates behave as said here is from
// BigQuery's documentation. Try the script on your own project before you rely on it: run it with
// the token 2, then with the token 1, and see the second fail.
package bigqueryfence

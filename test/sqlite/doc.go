// Package sqlite tests the SQL recipe of leadership/fence/sqlfence on a real SQLite and, if
// REGENT_POSTGRES is the data source name of a PostgreSQL that may be written to, on that. It is a
// module of its own, so that Regent needs no SQL driver.
package sqlite

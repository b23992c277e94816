// Package sqlite tests the SQL recipe of leadership/fence/sqlfence on a real SQLite and a real
// PostgreSQL: the one installed, which it starts, or the one that REGENT_POSTGRES is the data
// source name of, which may be written to. It is a module of its own, so that Regent needs no SQL
// driver.
package sqlite

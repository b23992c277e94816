// Package sqlite tests the SQL recipe of leadership/fence/sqlfence against a real SQLite and, if REGENT_POSTGRES is the data source name of
// a PostgreSQL that may be written to, against that. It is a module of its own, so that Regent's has no SQL driver.
package sqlite

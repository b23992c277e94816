// Package wire defines the HTTP API between Regent's server and its clients: paths, JSON documents,
// error codes and their HTTP status.
//
// Server and client use the same structs and the same conversions, so that one reads what the other
// wrote, and errors.Is(err, leadership.LeaseHeld) means the same on both sides. The structs and
// their tags are the only definition of the documents: a field is optional if its tag has omitzero,
// and required if not.
//
// Package json (encoding/json/v2) writes and reads the documents. For those of a leader's calls and
// of a stream, json_gen.go does the same without reflection; "go generate" makes it from the
// structs.
//
// A verb has one row (Verbs). If it is a command, Row.Body makes its body, whose method Command
// reads it and which Encode writes: the server and the client handle all commands alike.
//
// The two directions differ on purpose. A request is read strictly (Decode): an unknown field is
// refused, because a misspelt field that is ignored would give a lease on other terms than its
// leader believes. A reply is read leniently (Unmarshal): a server that is newer than its client
// may send more.
//
// Durations are Go duration strings in requests ("1m30s", "1500ms") and seconds in replies ("90s",
// "1.5s"). Fields in milliseconds have names that end in Ms. The remaining time of a lease is
// rounded down to whole milliseconds, and that of a wait is rounded up: rounding never makes a
// leader believe in more time than it has, nor a candidate ask too early. Instants are RFC 3339 in
// UTC, for people.
package wire

// Package wire is what travels between Regent's server and its clients: paths, JSON documents, error codes and their HTTP status.
//
// Server and client use the same types and the same conversions, so that whatever one of them writes, the other reads as
// it was meant, and errors.Is(err, leadership.LeaseHeld) says the same on both sides.
//
// The two directions differ on purpose. A request is read strictly (Decode): what is not understood is refused, with a sentence that says
// what is wrong and where, because a misspelt field that is ignored is a lease on other terms than its leader believes. A
// reply is read leniently: a server that is newer than its client may say more.
//
// Durations are Go duration strings on the way in ("1m30s", "1500ms") and seconds on the way out ("90s", "1.5s"). What is left of
// a lease is rounded down to whole milliseconds, and what has still to be waited for is rounded up, so that rounding never makes a
// leader believe in more time than it has, nor a candidate come too early. Instants are RFC 3339 in UTC, for people.
package wire

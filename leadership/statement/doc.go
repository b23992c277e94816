// Package statement makes and verifies statements about leases that need no server to be checked.
//
// A leader that asks for it gets, with its grant and with each renewal, a statement to show to
// others: a compact JWS (RFC 7515), signed by the server, with the Claims. Anyone who has the
// server's public keys (PathKeys) verifies it offline.
//
// It proves that this token was granted to this leader, until then by that store's clock. It does
// not prove that the leader still leads: it may have released, an operator may have ended its
// lease, and there may be a newer token. So a resource still compares tokens; see package fence.
// What a statement adds is that the token is no invention of its sender.
//
// It is no credential either: whoever has seen a statement can show it, too.
//
// # The form
//
// The header has alg, kid and typ, and nothing else. Ed25519 keys sign with EdDSA, and P-256 keys
// with ES256: the key says which, never the header. All parts are base64url in its canonical form,
// and the JSON in them has no spaces and each name once, so that there is one way to write it.
// Verifiers ignore claims that they do not know. testdata/statements.json has good statements and
// bad ones, for verifiers in any language.
package statement

// Package statement makes and verifies statements about leases that need no server to be checked.
//
// A leader that asks for it gets, with its grant and with each renewal, a statement to show to
// others: a compact JWS (RFC 7515), signed by the server, with the Claims. A verifier with the
// server's public keys (PathKeys) checks it offline.
//
// It proves that the store granted this token to this leader until that time, by the store's clock.
// It does not prove that the leader still leads: it may have released, an operator may have ended
// its lease, and there may be a newer token. So a resource still compares tokens; see package
// fence. A statement only adds that the sender did not invent the token.
//
// It is no credential either: any party that has seen a statement can show it, too.
//
// # The form
//
// The header has alg, kid and typ, and nothing else. Ed25519 keys sign with EdDSA, and P-256 keys
// with ES256: the key decides which, never the header. All parts are base64url in its canonical
// form, and the JSON in them has no spaces and no repeated names. Verifiers ignore claims that they
// do not know. testdata/statements.json has valid and invalid statements, for verifiers in any
// language.
package statement

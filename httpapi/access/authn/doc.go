// Package authn authenticates callers. Package authz decides what a caller may do, from the
// Principal that Require puts into the context.
//
// The operator chooses one of three ways. It is never guessed from the shape of a token:
//
//	None      every caller is anonymous    for one machine, where any caller may do everything
//	Platform  Cloud Run's IAM has checked  the token comes without its signature, and is believed
//	                                       because of where the process runs
//	OIDC      checked here                 against the keys of the configured issuers
//
// With either of the last two, IAP may be in front, for people with a browser: a request that came
// through Google's Identity-Aware Proxy has an assertion of its own, which is checked here.
//
// Any reader of a bearer token can act as its caller until it expires. So no error or log line
// contains any part of a token, not even its header or a claim: errors consist of sentences of this
// package and of the operator's settings.
//
// # What OIDC and IAP believe
//
// The cheap checks come first, so that a made-up token costs next to nothing: the length and the
// alphabet of the token; its header, where any algorithm but the one and any key or address of keys
// that the token brings along is refused; its claims; only then the key and the signature. Numbers
// must be integers and strings must be strings. A duplicate name in an object is refused, because
// two parsers could read different values.
//
// The signature is checked by go-jose, with RS256 as the only algorithm (ES256 for an assertion of
// Identity-Aware Proxy) and the issuer's key as the only key. Everything else that go-jose could do
// with a token (other algorithms, encryption, keys in headers, compression) is refused before it
// sees the token.
//
// # Keys
//
// Each issuer has a keyring. Run has one goroutine for each keyring, and only this goroutine
// talks to the issuer:
//
//	     start           4/5 of max-age are over, or a kid is unknown (at most once a minute)
//	       |                                 |
//	       v            keys                 v
//	    looking ------------------------> serving ----> looking again, serving the known keys
//	       ^ \                               |
//	1 s to  |  \ no answer                   | no answer for 24 h
//	1 min   |   v                            v
//	       failing: 503 <------------------ too old
//
// A look is one read of the issuer's keys. A caller waits for a look in progress, a few seconds at
// most. It causes a look only if there was none for a minute, so a flood of made-up kids costs the
// issuer one look a minute. When the issuer removes a key, every token that it signed is refused,
// also those that were verified before.
//
// The wall clock of the process decides here, unlike anywhere else in Regent: tokens are dated.
package authn

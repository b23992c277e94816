// Package authn finds out who calls. What a caller may do is decided elsewhere, from the Principal that Require puts into the context.
//
// There are three ways, and which of them holds is said by the operator, never guessed from a token's shape:
//
//	None      everybody is anonymous          for one machine, where whoever reaches the port may do all
//	Platform  Cloud Run's IAM has checked     the token comes without its signature: it is believed because of where the process runs
//	OIDC      checked here                    against the keys of the configured issuers
//
// A token is a bearer's: whoever reads it is its owner until it expires. So nothing of it is in any error or log line, not even its
// header or a claim; errors are made of sentences that stand in this package, and of what the operator configured.
//
// # What OIDC believes
//
// A token is looked at from the cheap to the dear, so that a made-up one costs next to nothing: its length and alphabet; its header, where
// anything but RS256, and any key or place of keys that the token brings along, is refused; its claims; only then the key
// and the signature. Numbers are integers and strings are strings; a name that stands twice is refused, for two readers would read two things.
//
// The check needs no library. What is left when a token has come so far is one call of crypto/rsa, and the libraries for tokens bring
// with them what is refused here on purpose: other algorithms, encryption, keys in headers, compression.
//
// # Keys
//
// Each issuer has a keyring, and OIDC.Run has one goroutine for each, which alone talks to the issuer:
//
//	     start           4/5 of max-age over, or a kid that is not known (at most once in a minute)
//	       |                                 |
//	       v            keys                 v
//	    looking ------------------------> serving ----> looking again, serving what it has
//	       ^ \                               |
//	1 s to  |  \ no answer                   | no answer for 24 h
//	1 min   |   v                            v
//	       failing: 503 <------------------ too old
//
// A caller waits for a look that is under way, a few seconds at most, and never causes one while another has just been: a flood of made-up
// kids costs the issuer a look a minute. A key that the issuer no longer shows ends every token that it signed, also those that were seen before.
//
// A process's wall clock decides here, unlike anywhere else in Regent: tokens are dated.
package authn

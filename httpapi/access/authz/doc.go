// Package authz decides what callers may do.
//
// An Access is a parsed access file, which an operator writes: grants of roles to principals, over
// elections. Everything that no grant allows is refused.
//
//	grants:
//	  - principals: [writer@my-project.iam.gserviceaccount.com]
//	    roles: [candidate]
//	    elections: [reports, "jobs.*"]
//	    candidates: ["writer-*"]
//	    maxLeaseDuration: 5m
//	  - principals: [oncall@example.com]
//	    roles: [operator]
//	    elections: ["*"]
//	limits:
//	  - principals: [writer@my-project.iam.gserviceaccount.com]
//	    renewals: 5000
//
// A principal is the verified caller, as package authn names it, written in full, or "*" for every
// authenticated caller. An e-mail address may be given to another person one day; ISSUER|SUBJECT,
// which also names a caller that has an e-mail, never is. Where every holder of a token of the
// issuer is authenticated (oidc; with Google, that is every account), "*" may only be an observer:
// even a verifier may end a term, by its verdicts.
//
// An election or a candidate id is written in full, or as a prefix and a star. A candidate may use
// the ids that its grant lists. Without a list these are the principal's own name, and ids that
// begin with it and a colon. So no principal can take the id of another principal's candidate.
// maxLeaseDuration limits the lease that the principals may ask for by that grant; the
// leaseDuration of the election is always allowed.
//
//	role        may
//	candidate   acquire, renew, release, step down, ask for approval, hand over, say that it is
//	            ready, yield, delegate, leave checkpoints and journals behind, join and leave
//	            under its own ids, and read a stream as a member by one; read the election, what
//	            was delegated below it, its members, its history, its stream, its overrides, its
//	            checkpoint and its journal; ask why a candidate does not lead, and which members
//	            follow a token; check tokens
//	observer    read elections, their lists, trees, members, histories, streams and overrides; ask
//	            why a candidate does not lead, and which members follow a token; check tokens
//	verifier    check tokens; judge
//	scheduler   tick
//	halter      halt, by a pattern that its elections cover
//	operator    what an observer may; read checkpoints and journals; configure; tick; order:
//	            assign, evict, pause, resume, ban, approve, lift, halt, unhalt
//	admin       what an operator may; judge; delete; unlock
//
// Followers, workers and witnesses have the role candidate, for their own ids: a witness does not
// lead because it asks as a witness. The quorum is not secret: every caller that may read the
// election may read the electorate, and the ids, roles and notes of members. A principal counts as
// a member of the electorate only under its own ids.
//
// Checkpoints and journals may be confidential: unlike metadata and reports, observers may not read
// them. Every caller that may lead an election may read its checkpoint and journal.
//
// Some calls concern a second election, and need a right over that, too. A lease that stands on
// another one (via) needs the right to lead that one by the same candidate id, a delegation the
// right to acquire the child by it. A tree leaves out elections that the caller may not read. The
// peer decides about a lease at a peer. Every caller that may read a lease may read which lease it
// stands on.
//
// wire.Verbs says which roles may make which call. limits sets the limits of principals on each
// instance; see limit.Limits.
//
// A Gate asks the access file about every call, and about a waiting candidate once more before each
// attempt to grant it the lease. An open stream goes on until its limit even if its reader has lost
// the right. A Gate leaves a Record of each call that it refuses (one for all parts of a batch), of
// each acquire that was answered with a lease, of each delegation, and of each call that needs a
// verifier, an operator or an admin, with the reason that its caller gave.
//
// A Gate also answers whether a candidate may lead, for explain.
package authz

// Package authz decides who may do what.
//
// An Access is what an access file says, which an operator writes: grants, each of roles to
// principals, over elections. Everything that no grant allows is refused.
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
// issuer is authenticated (oidc; with Google, that is everyone), "*" may only look: observer. A
// verifier may end a term by its verdicts.
//
// An election or a candidate id is written in full, or as a prefix and a star. A candidate may use
// the ids that its grant lists. Without a list these are the principal's own name, and ids that
// begin with it and a colon. So no principal can take the id of another principal's candidate. With
// maxLeaseDuration the principals may ask for no longer lease by that grant; a lease as the
// election is configured is always allowed.
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
// Followers, workers and witnesses have the role candidate, for their own ids: what keeps a witness
// from leading is that it asks as one. Who counts for a quorum is no secret and no right: the
// electorate, and the ids, roles and notes of members, are for all that may read the election. A
// principal counts as a member of the electorate only by an id that is its own.
//
// What leaders leave behind, in a checkpoint or a journal, may be confidential: unlike metadata and
// reports it is not for observers. All that may lead an election may read it.
//
// Some calls touch a second election, and ask for a right over that, too. A lease that stands on
// another one (via) needs the right to lead that one by the same candidate id, a delegation the
// right to acquire the child by it. A tree leaves out what the caller may not read. A lease at a
// peer is the peer's to judge. Which lease another one stands on is for all that may read that one.
//
// Which role may make which call stands in wire.Verbs. Limits change what a principal may ask of
// one instance; see limit.Limits.
//
// A Gate asks the access file about every call, and about a waiting candidate once more before each
// attempt to grant it the lease. A stream that is open ends by its limit, though its reader has
// lost the right meanwhile. A Gate leaves a Record of each call that it refuses (one for all parts
// of a batch), of each acquire that was answered with a lease, of each delegation, and of each call
// that needs a verifier, an operator or an admin, with the reason that its caller gave.
//
// It also knows which candidates may lead, for the question why one does not.
package authz

// Package authz decides who may do what.
//
// A Policy is a file that an operator writes: grants, each of roles to principals, over elections.
// Everything that no grant allows is refused.
//
//	grants:
//	  - principals: [writer@my-project.iam.gserviceaccount.com]
//	    roles: [candidate]
//	    elections: [reports, "jobs.*"]
//	    candidates: ["writer-*"]
//	  - principals: [oncall@example.com]
//	    roles: [operator]
//	    elections: ["*"]
//	limits:
//	  - principals: [writer@my-project.iam.gserviceaccount.com]
//	    renewals: 5000
//
// A principal is the verified caller, as package authn names it, written in full, or "*" for every
// authenticated caller. An election or a candidate id is written in full, or as a prefix and a
// star. A candidate may use the ids that its grant lists. Without a list these are the principal's
// own name, and ids that begin with it and a colon. So no principal can take the id of another
// principal's candidate.
//
//	role        may
//	candidate   acquire, renew and release under its own ids; read the election, its history and
//	            its stream; check tokens
//	observer    read elections, their lists, histories and streams; check tokens
//	verifier    check tokens
//	scheduler   tick
//	operator    what an observer may; configure; tick
//	admin       what an operator may; delete
//
// Which role may make which call stands in wire.Verbs. Limits change what a principal may ask of
// one instance; see limit.Limits.
//
// A Gate asks the policy about every call. It leaves a Record of each call that it refuses, and of
// each call that needs an operator or an admin.
package authz

// Package authz says who may do what.
//
// A Policy is a file of an operator's: grants, each of roles to principals, over elections. What no grant allows is refused.
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
// A principal is who package identity says is calling, spelt in full, or "*" for everybody who was let in. An election, and a candidate's id, is
// spelt in full, or up to a star at its end. A candidate may use the ids that its grant lists; without a list, those that are its
// principal's own name, or begin with that and a colon. Nobody can take the id of another principal's candidate, then, whatever it claims to
// be.
//
//	role        may
//	candidate   acquire, renew and release under its own ids; read the election, its history and its stream; check tokens
//	observer    read elections, their lists, histories and streams; check tokens
//	verifier    check tokens
//	scheduler   tick
//	operator    what an observer may; configure; tick
//	admin       what an operator may; delete
//
// Limits are what a principal may ask of one instance, where that is not the default; see limit.Limits.
//
// A Guard stands before the service and asks the policy in the words of the service: which principal makes which call about which election, as which
// candidate. It asks before anything is read, so that to a stranger an election that is there and one that is not look alike. Every
// call that it refuses, and every one that needs an operator or an admin, leaves a Record.
package authz

package authz

import "strings"

// Role is a set of calls.
type Role string

// The roles.
const (
	Candidate Role = "candidate"
	Observer  Role = "observer"
	Verifier  Role = "verifier"
	Scheduler Role = "scheduler"
	Operator  Role = "operator"
	Admin     Role = "admin"
)

// Roles are all of them.
var Roles = []Role{Candidate, Observer, Verifier, Scheduler, Operator, Admin}

// Call is something that the service does.
type Call string

// The calls.
const (
	Acquire    Call = "acquire"
	Renew      Call = "renew"
	Release    Call = "release"
	CheckToken Call = "checkToken"
	Read       Call = "read"   // how an election is
	List       Call = "list"   // how those are that the caller may read
	Events     Call = "events" // what happened to an election
	Watch      Call = "watch"  // what happens to it
	WatchAll   Call = "watchAll"
	Configure  Call = "configure"
	Delete     Call = "delete"
	Tick       Call = "tick"
)

// Calls are all of them.
var Calls = []Call{Acquire, Renew, Release, CheckToken, Read, List, Events, Watch, WatchAll, Configure, Delete, Tick}

// calls is what a role may do.
var calls = func() map[Role][]Call {
	reads := []Call{CheckToken, Read, List, Events, Watch, WatchAll}
	operates := append([]Call{Configure, Tick}, reads...)
	return map[Role][]Call{
		Candidate: {Acquire, Renew, Release, CheckToken, Read, Events, Watch},
		Observer:  reads,
		Verifier:  {CheckToken},
		Scheduler: {Tick},
		Operator:  operates,
		Admin:     append([]Call{Delete}, operates...),
	}
}()

// privileged are the calls that leave a Record though they are allowed.
var privileged = map[Call]bool{Configure: true, Delete: true, Tick: true}

// spelt is how a person is told of the roles.
func spelt() string {
	var names []string
	for _, r := range Roles {
		names = append(names, string(r))
	}
	return strings.Join(names, ", ")
}

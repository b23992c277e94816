// Package mcp offers Regent to language models as tools of the Model Context Protocol.
//
// There is one set of tools. They use the Go SDK, so they can do no more than any agent. They are
// served in two ways:
//
//	Session    over stdin and stdout, by "regent mcp": a process of the model's own. Calls go to
//	           the server as those of every command do. The process holds the leases, and releases
//	           them when the session ends.
//	Door       over streamable HTTP, by "regent serve --mcp": calls go to the REST API of the same
//	           process without a network, with the principal that was authenticated. So rights,
//	           limits and records are those of the REST API.
//
// A model never sees the key of a lease. In a Session it names a lease by its election. Over HTTP
// there are no sessions, and a call may reach any instance, so lead answers with a handle: the
// names and the key of the lease, sealed under a key that all instances derive from the secret of
// their store, and bound to the principal. An instance that is called with the handle renews the
// lease from then on:
//
//	 lead                  a call with the handle, at any instance
//	  |                      |
//	  v                      v
//	renews ................ renews ............. stops renewing: the lease ends by itself, unless
//	         for keep after each call            another instance goes on with it
//
// So several instances may renew one lease. Each confirms by a strong read, before it answers a
// call with a handle, that the lease is still the caller's: another one may have ended it.
// stop_leading releases.
//
// A model is slow. Its leadership may be over when it acts on an answer: only the fencing token
// protects.
package mcp

// Package dashboard serves Regent's page for people: the fleet of elections, one election, and the
// buttons for an operator's orders.
//
// The page is a static shell, a stylesheet and ES modules, embedded, without a build step and
// without requests to other servers. Its script uses the REST API of the same origin, so rights,
// limits, audits and refusals are those of every other caller, and nothing is decided here. The
// shell holds no secret and is served to every caller. Only PathVisitor, which answers with the
// visitor's rights, needs an authenticated caller.
package dashboard

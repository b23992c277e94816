// Package httpapi is Regent's REST API. It turns HTTP requests into calls of an instance.Service
// and the results into JSON.
//
// It decides nothing about leadership, and admits every caller: limits, rights and telemetry are
// gates of the service (instance.Guard). It validates the form of requests, strictly and within
// limits, answers every error with a problem document (RFC 9457) whose code is stable, and hides
// the cause of an internal error. Each request has an id, which is in the reply, the problem, the
// log, and the events of the change.
//
// Requests of pages of other origins are refused, in origin.go. There is no CORS.
//
// Other doors may stand beside the API, in door.go: package mcp is one.
//
// openapi.yaml is the contract, written by hand and served at /openapi.yaml. README.md is the
// reference for users. Tests hold the contract to the table of verbs, to the codes of package wire
// and, with package apitest, to every exchange that they make.
//
// # To add a verb
//
// A verb is a row of wire.Verbs. Routes, roles, limits, metrics, the check of the contract and the
// tables of README.md are walked from it.
//
// A command (leadership.Command: it changes one election, and is answered with the lease):
//
//  1. leadership/command.go, or another file there: the struct and its Validate
//  2. leadership/rule: its rule, and a case of Apply
//  3. leadership/wire/verbs.go: the row
//  4. leadership/wire/command.go: the body, read and written
//  5. httpapi/openapi.yaml: the contract
//
// Any other call needs, in place of 2 and 4, the JSON form in package wire, the method of Service,
// of instance.Instance and instance.Guarded, the handler here, and the method of the SDK.
//
// "go test ./httpapi -run Readme -update" writes the tables of README.md anew, and
// "go test ./httpapi/access/authz -update" the table of rights, once the verb is among its cases.
package httpapi

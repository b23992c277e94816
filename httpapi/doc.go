// Package httpapi is Regent's REST API. It turns HTTP requests into calls of an instance.Service
// and the results into JSON.
//
// It decides nothing about leadership, and lets everyone in: limits, rights and telemetry are gates
// of the service (instance.Guard). What it decides is what a request may look like. It reads
// strictly and within limits, answers every error with a problem document (RFC 9457) whose code is
// stable, and hides what caused an internal error. Each request has an id, which is in the reply,
// the problem, the log, and the events of whatever it changed.
//
// Pages of other origins that a browser shows are kept out, in origin.go. There is no CORS.
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
// tables of README.md are walked from it. These files change:
//
//  1. leadership/operator.go, or another file there: the request, the rule, the method of Service
//  2. leadership/wire/verbs.go: the row, and the JSON form of the body if none fits
//  3. leadership/instance/guarded.go: the method in an interface, of Instance and of Guarded
//  4. httpapi/operator.go, or another file there: the handler, and its entry in the file's handlers
//  5. httpapi/openapi.yaml: the contract
//  6. leadership/client/calls.go: the method of the SDK
//
// "go test ./httpapi -run Readme -update" writes the tables of README.md anew, and
// "go test ./httpapi/access/authz -update" the table of rights, once the verb is among its cases.
package httpapi

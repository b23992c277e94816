// Package httpapi is Regent's REST API: it turns HTTP into calls of a leadership.Service and the answers into JSON.
//
// It decides nothing about leadership. What it does decide is what a request may look like: it reads strictly and within limits, answers
// every error with a problem document (RFC 9457) whose code is stable, and lets out nothing of what caused an error inside. Each
// request has an id, which stands in the reply, in the problem, in the log, and in the history of whatever it changed.
//
// openapi.yaml is the contract, written by hand and served at /openapi.yaml. The tests hold it to the routes, to the codes of
// package wire and, with package apitest, to every exchange that they make.
package httpapi

// Package generated tests that a client generated from openapi.yaml compiles and works. It is a
// module of its own, so that Regent needs no generator.
package generated

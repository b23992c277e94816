// Package terraform tests the repository's Terraform module: with Terraform itself and a provider
// that knows what the real one accepts but creates nothing (see provider), and against the code
// that it deploys. It is a module of its own, so that Regent needs none of Terraform's libraries,
// nor Prometheus' parser.
//
// testdata/alerts.json says when each alert fires by default: its metric, threshold and query.
// Other tests may read it.
package terraform

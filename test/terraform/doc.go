// Package terraform tests the module in the folder terraform of the repository: with Terraform itself and a provider that knows what the
// real one takes but creates nothing (see provider), and against the code that it deploys. It is a module of its own, so that Regent's has
// none of Terraform's libraries.
//
// testdata/alerts.json is what fires when, as the defaults have it: for each alert its metric, threshold and query. Other tests may read it.
package terraform

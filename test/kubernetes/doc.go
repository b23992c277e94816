// Package kubernetes runs real clients of Kubernetes against a Regent server: client-go and
// controller-runtime. It is a module of its own, so that Regent does not depend on them.
package kubernetes

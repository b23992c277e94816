// Package proxy has what stands between two processes under test: Line, which can be cut, Cutter, which cuts at a byte, and Counter,
// which counts gRPC calls.
package proxy

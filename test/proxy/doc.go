// Package proxy has what stands between two processes under test: Line, which can be cut, and Counter, which counts gRPC calls.
package proxy

// Package proxy has proxies between two processes under test: Hop, which delays, loses, limits,
// cuts or resets TCP connections; Cutter, a Hop that cuts each at a byte; Counter, which counts
// gRPC calls; and Gate, which lets gRPC calls of some methods through.
//
// Bytes go through a Hop in two directions:
//
//	client ──▶ read ──▶ queue ──▶ write ──▶ server      Request
//	client ◀── write ◀── queue ◀── read ◀── server      Reply
//
// A piece is queued with the time at which it arrived, and leaves when the conditions of that
// moment let it. So several pieces are in transit at once, new conditions apply to them too, and
// none overtakes another. The queue is bounded: a sender that outruns it is no longer read.
package proxy

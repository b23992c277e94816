// Package proxy has what stands between two processes under test: Hop, which does to connections what weather, cuts and resets do,
// Line, which can be cut, Cutter, which cuts at a byte, and Counter, which counts gRPC calls. A Hop needs no test: commands use it too.
//
// Bytes go through a Hop in two lanes, one for each way:
//
//	client ──▶ read ──▶ queue ──▶ write ──▶ server      Request
//	client ◀── write ◀── queue ◀── read ◀── server      Reply
//
// A piece is queued with the time at which it came, and leaves when the weather of that moment lets it: so many pieces are under way at
// once, a change of weather holds for those too, and none overtakes another. The queue is bounded; a sender who outruns it is read no more.
package proxy

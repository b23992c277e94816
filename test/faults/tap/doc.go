// Package tap is a line of HTTP to a server of Regent that writes down each call.
//
//	who calls ----> tap ----> hop, where things go wrong ----> server
//
// What becomes of a connection on one side becomes of its own connection on the other: one that breaks off breaks off, one that falls silent is
// silent, and neither has calls of others in it. So whoever calls meets the network as it is without the tap.
package tap

package main

import "slices"

// steps is a set of the numbers of steps. They are made nearly in order, so that few stand beyond
// the first gap.
type steps struct {
	Through uint64   `json:"through"`          // all from 1 to this one are in it
	Beyond  []uint64 `json:"beyond,omitempty"` // and these, which ascend; the next after Through is not among them
}

func (s *steps) has(n uint64) bool { return n <= s.Through || slices.Contains(s.Beyond, n) }

// add adds a number that is not in it.
func (s *steps) add(n uint64) {
	at, _ := slices.BinarySearch(s.Beyond, n)
	s.Beyond = slices.Insert(s.Beyond, at, n)
	for len(s.Beyond) > 0 && s.Beyond[0] == s.Through+1 {
		s.Through, s.Beyond = s.Through+1, s.Beyond[1:]
	}
}

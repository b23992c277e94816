package authn

import (
	"container/list"
	"crypto/rsa"
	"crypto/sha256"
	"sync"
)

// verified is a token whose signature is good: what it says, and the key that says so.
type verified struct {
	claims claims
	ring   *keyring
	keyID  string
	key    *rsa.PublicKey
}

// seen remembers verified tokens by their hash, so that a leader which renews every few seconds costs one RSA operation for each of its
// tokens. Tokens that are not good never come in, and so cannot push out those that are.
type seen struct {
	limit int

	mu     sync.Mutex // guards what follows
	byHash map[[sha256.Size]byte]*list.Element
	recent *list.List // of *remembered, the latest first
}

type remembered struct {
	hash [sha256.Size]byte
	verified
}

func newSeen(limit int) *seen {
	return &seen{limit: limit, byHash: map[[sha256.Size]byte]*list.Element{}, recent: list.New()}
}

func (s *seen) get(hash [sha256.Size]byte) (verified, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.byHash[hash]
	if !ok {
		return verified{}, false
	}
	s.recent.MoveToFront(e)
	return e.Value.(*remembered).verified, true
}

// put remembers a token and forgets the one that was not used for longest.
func (s *seen) put(hash [sha256.Size]byte, v verified) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.byHash[hash]; ok {
		s.remove(hash)
	}
	s.byHash[hash] = s.recent.PushFront(&remembered{hash, v})
	if s.recent.Len() > s.limit {
		s.remove(s.recent.Back().Value.(*remembered).hash)
	}
}

func (s *seen) drop(hash [sha256.Size]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(hash)
}

// remove is drop under the lock.
func (s *seen) remove(hash [sha256.Size]byte) {
	if e, ok := s.byHash[hash]; ok {
		s.recent.Remove(e)
		delete(s.byHash, hash)
	}
}

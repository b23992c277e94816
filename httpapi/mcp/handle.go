package mcp

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
)

// handle is the content of a caller's handle.
type handle struct {
	lease leadership.LeaseRequest
	keep  time.Duration
}

// sealed is the plaintext of a handle.
type sealed struct {
	Election     leadership.Election    `json:"election"`
	CandidateID  leadership.CandidateID `json:"candidateId"`
	Key          string                 `json:"key"`
	FencingToken leadership.Token       `json:"fencingToken"`
	Keep         wire.Duration          `json:"keep"`
}

// handlePrefix lets people, and scanners for secrets, recognise a handle.
const handlePrefix = "regent-lead-"

// maxHandle is more than the length of the longest handle.
const maxHandle = 1024

// seals seals handles under a key that all instances on a store derive from its secret.
type seals struct {
	secret func(context.Context) ([]byte, error)
	turn   chan struct{} // capacity 1: holds a value while under is used

	under cipher.AEAD // nil until the secret was read from the store
}

func newSeals(secret func(context.Context) ([]byte, error)) *seals {
	return &seals{secret: secret, turn: make(chan struct{}, 1)}
}

func (s *seals) cipher(ctx context.Context) (cipher.AEAD, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if s.under != nil {
		return s.under, nil
	}
	secret, err := s.secret(ctx)
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "regent mcp handles 1", sha256.Size)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err == nil {
		s.under, err = cipher.NewGCM(block)
	}
	return s.under, err
}

// seal returns the text of a handle, which only the principal can use.
func (s *seals) seal(ctx context.Context, principal string, h handle) (string, error) {
	under, err := s.cipher(ctx)
	if err != nil {
		return "", err
	}
	text, err := wire.Marshal(sealed{h.lease.Election, h.lease.CandidateID, h.lease.Key.Text(), h.lease.Token, wire.Duration(h.keep)})
	if err != nil {
		return "", err
	}
	nonce := make([]byte, under.NonceSize(), under.NonceSize()+len(text)+under.Overhead())
	rand.Read(nonce) // never fails
	return handlePrefix + base64.RawURLEncoding.EncodeToString(under.Seal(nonce, nonce, text, []byte(principal))), nil
}

// open reads a handle. Its error does not say in which way the handle is wrong.
func (s *seals) open(ctx context.Context, principal, text string) (handle, error) {
	under, err := s.cipher(ctx)
	if err != nil {
		return handle{}, err
	}
	encoded, ok := strings.CutPrefix(text, handlePrefix)
	box, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	lines := strings.ContainsAny(encoded, "\r\n") // base64 would skip these
	if !ok || err != nil || lines || len(text) > maxHandle || len(box) < under.NonceSize() {
		return handle{}, errHandle
	}
	plain, err := under.Open(nil, box[:under.NonceSize()], box[under.NonceSize():], []byte(principal))
	var w sealed
	if err != nil || wire.Unmarshal(plain, &w) != nil {
		return handle{}, errHandle
	}
	key, err := leadership.ParseKey(w.Key)
	if err != nil {
		return handle{}, fmt.Errorf("a sealed handle: %w", err)
	}
	return handle{leadership.LeaseRequest{Election: w.Election, CandidateID: w.CandidateID, Key: key, Token: w.FencingToken}, time.Duration(w.Keep)}, nil
}

// errHandle refuses a handle that was invented, changed, or made for another caller.
var errHandle = invalid("handle", "this is not a handle that lead has returned to you; pass it exactly as lead returned it, or call lead again")

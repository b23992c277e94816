package statement_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/statement"
)

var update = flag.Bool("update", false, "write testdata/statements.json")

// table is testdata/statements.json, which verifiers in all languages are run against.
type table struct {
	Keys json.RawMessage `json:"keys"`
	Rows []row           `json:"rows"`
}

// row is a statement, and what a verifier must say of it.
type row struct {
	Name      string              `json:"name"`
	Want      string              `json:"want"` // what the error begins with; "" for a good statement
	Statement string              `json:"statement"`
	NowMs     int64               `json:"nowMs"`
	Election  leadership.Election `json:"election,omitempty"` // what the verifier asks for
	Token     leadership.Token    `json:"token,omitempty"`
}

func TestStatements(t *testing.T) {
	t.Parallel()
	made, err := json.MarshalIndent(makeTable(t), "", "  ")
	require.NoError(t, err)
	const name = "testdata/statements.json"
	if *update {
		require.NoError(t, os.WriteFile(name, append(made, '\n'), 0o644))
	}
	text, err := os.ReadFile(name)
	if err != nil || !bytes.Equal(bytes.TrimSpace(text), made) {
		t.Fatalf("%s is not what this test makes; run it with -update: %v", name, err)
	}
	var all table
	require.NoError(t, json.Unmarshal(text, &all))
	keys, err := statement.ParseKeys(all.Keys)
	require.NoError(t, err)
	for _, r := range all.Rows {
		claims, err := keys.Verify(r.Statement, time.UnixMilli(r.NowMs), statement.Want{Election: r.Election, Token: r.Token})
		switch {
		case r.Want == "" && (err != nil || claims.Token != 34 || claims.Leader != "agent-1" || !strings.HasPrefix(string(claims.Election), "reports")):
			t.Errorf("%s: %+v, %v", r.Name, claims, err)
		case r.Want != "" && (err == nil || !strings.HasPrefix(err.Error(), "statement: "+r.Want+":")):
			t.Errorf("%s: %v, want %s", r.Name, err, r.Want)
		}
	}
}

// signer is a key of the table.
type signer struct {
	id   string
	by   string
	sign func([]byte) []byte
}

func edKey(t *testing.T, seed byte) (signer, crypto.PublicKey) {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	return signer{thumbprint(t, key.Public()), "EdDSA", func(m []byte) []byte { return ed25519.Sign(key, m) }}, key.Public()
}

// ecKey returns a key that signs always the same (RFC 6979).
func ecKey(t *testing.T, curve elliptic.Curve, by string, hash crypto.Hash) (signer, *ecdsa.PrivateKey) {
	key, err := ecdsa.ParseRawPrivateKey(curve, bytes.Repeat([]byte{7}, (curve.Params().BitSize+7)/8))
	require.NoError(t, err)
	return signer{thumbprint(t, &key.PublicKey), by, func(m []byte) []byte { return raw(t, der(t, key, m, hash), (curve.Params().BitSize+7)/8) }}, key
}

func der(t *testing.T, key *ecdsa.PrivateKey, m []byte, hash crypto.Hash) []byte {
	h := hash.New()
	h.Write(m)
	signature, err := key.Sign(nil, h.Sum(nil), hash)
	require.NoError(t, err)
	return signature
}

// raw returns an ASN.1 signature as JWS has it, by another way than the package's.
func raw(t *testing.T, der []byte, size int) []byte {
	var r, s big.Int
	rest := der[2:]
	for _, n := range []*big.Int{&r, &s} {
		length := int(rest[1])
		n.SetBytes(rest[2 : 2+length])
		rest = rest[2+length:]
	}
	if len(rest) > 0 {
		t.Fatal("not a signature")
	}
	return append(r.FillBytes(make([]byte, size)), s.FillBytes(make([]byte, size))...)
}

func thumbprint(t *testing.T, public crypto.PublicKey) string {
	print, err := (&jose.JSONWebKey{Key: public}).Thumbprint(crypto.SHA256)
	require.NoError(t, err)
	return base64.RawURLEncoding.EncodeToString(print)
}

func b64(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// over signs a header and claims, whatever they are.
func (s signer) over(header, claims string) string {
	message := b64(header) + "." + b64(claims)
	return message + "." + base64.RawURLEncoding.EncodeToString(s.sign([]byte(message)))
}

func (s signer) header(more string) string {
	return fmt.Sprintf(`{"alg":%q,"kid":%q,"typ":"regent+jwt"%s}`, s.by, s.id, more)
}

// of signs claims with the usual header.
func (s signer) of(claims string) string { return s.over(s.header(""), claims) }

const (
	issued = 1_780_000_000_000 // ms
	ends   = issued + 30_000
	good   = `{"iss":"https://regent.example.com","sub":"agent-1","principal":"agent@example.com","election":"reports","fencingToken":34,` +
		`"iat":1780000000,"exp":1780000030}`
)

func with(old, new string) string {
	if strings.Count(good, old) != 1 {
		panic(old)
	}
	return strings.Replace(good, old, new, 1)
}

func makeTable(t *testing.T) table {
	ed, edPublic := edKey(t, 1)
	stranger, _ := edKey(t, 2)
	ec, ecPrivate := ecKey(t, elliptic.P256(), "ES256", crypto.SHA256)
	p384, p384Private := ecKey(t, elliptic.P384(), "ES384", crypto.SHA384)
	hs := signer{ed.id, "HS256", func(m []byte) []byte {
		mac := hmac.New(sha256.New, edPublic.(ed25519.PublicKey))
		mac.Write(m)
		return mac.Sum(nil)
	}}
	fixed := func(by string, id string, signature []byte) signer {
		return signer{id, by, func([]byte) []byte { return signature }}
	}
	altered := func(s signer, change func([]byte) []byte) signer {
		return signer{s.id, s.by, func(m []byte) []byte { return change(s.sign(m)) }}
	}
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{
		{Key: edPublic, KeyID: ed.id, Algorithm: "EdDSA", Use: "sig"},
		{Key: &ecPrivate.PublicKey, KeyID: ec.id, Algorithm: "ES256", Use: "sig"},
		{Key: &p384Private.PublicKey, KeyID: p384.id, Algorithm: "ES384", Use: "sig"},
		{Key: edPublic, KeyID: "for-secrets", Use: "enc"},
		{Key: edPublic, KeyID: "for-another", Algorithm: "ES256", Use: "sig"},
		{Key: []byte("a secret that all know"), KeyID: "shared", Algorithm: "HS256", Use: "sig"},
	}}
	keys, err := json.Marshal(set)
	require.NoError(t, err)
	malformed := []byte(`{"keys":[{"kty":"EC","crv":"P-256","kid":"malformed","x":"AAAA","y":"AAAA"},`)
	all := table{Keys: bytes.Replace(keys, []byte(`{"keys":[`), malformed, 1)}
	add := func(want, name, text string) {
		all.Rows = append(all.Rows, row{Name: name, Want: want, Statement: text, NowMs: issued + 1000})
	}
	asked := func(want, name string, now int64, election leadership.Election, token leadership.Token) {
		all.Rows = append(all.Rows, row{name, want, ed.of(good), now, election, token})
	}
	text := ed.of(good)
	parts := strings.Split(text, ".")
	lastOf := func(s string) string { // the same bytes in another way: the last character has bits to spare
		const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
		return s[:len(s)-1] + string(alphabet[strings.IndexByte(alphabet, s[len(s)-1])+1])
	}

	add("", "Ed25519", text)
	add("", "ES256", ec.of(good))
	add("", "a claim of a newer server", ed.of(with(`"iat":`, `"later":{"a":[1]},"iat":`)))
	add("", "of a seat, and no principal", ed.of(with(`"principal":"agent@example.com","election":"reports"`, `"election":"reports.2","of":"reports","seat":2`)))
	asked("", "about what is asked for", issued+1000, "reports", 34)
	asked("", "in the last millisecond", ends-1, "", 0)
	asked("", "by a clock that is a little behind", issued-5000, "", 0)

	add("form", "empty", "")
	add("form", "no dot", parts[0])
	add("form", "two parts", parts[0]+"."+parts[1])
	add("form", "four parts", text+"."+parts[2])
	add("form", "trailing dot", text+".")
	add("form", "no header", "."+parts[1]+"."+parts[2])
	add("form", "no claims", parts[0]+".."+parts[2])
	add("form", "no signature", parts[0]+"."+parts[1]+".")
	add("form", "trailing data", text+" ")
	add("form", "trailing newline", text+"\n")
	add("form", "a line break within", text[:20]+"\r\n"+text[20:])
	add("form", "padded base64", parts[0]+"."+parts[1]+"."+parts[2]+"==")
	add("form", "another base64", parts[0]+"."+parts[1]+".+/"+parts[2][2:])
	add("form", "base64 that is not canonical", parts[0]+"."+parts[1]+"."+lastOf(parts[2]))
	add("form", "the JSON form of a JWS", `{"payload":"`+parts[1]+`","protected":"`+parts[0]+`","signature":"`+parts[2]+`"}`)
	add("form", "huge", parts[0]+"."+strings.Repeat("A", 8<<10)+"."+parts[2])

	add("header", "a header that is no object", ed.over(`["EdDSA"]`, good))
	add("header", "a header that is not JSON", ed.over(`{"alg"`, good))
	add("header", "a header that is nested deeply", ed.over(strings.Repeat("[", 5000), good))
	add("header", "a header with spaces", ed.over(`{ "alg":"EdDSA","kid":"`+ed.id+`","typ":"regent+jwt"}`, good))
	add("header", "alg twice", ed.over(ed.header(`,"alg":"none"`), good))
	add("header", "no typ", ed.over(`{"alg":"EdDSA","kid":"`+ed.id+`"}`, good))
	add("header", "an ID token", ed.over(`{"alg":"EdDSA","kid":"`+ed.id+`","typ":"JWT"}`, good))
	add("header", "crit", ed.over(ed.header(`,"crit":["exp"]`), good))
	add("header", "jku", ed.over(ed.header(`,"jku":"https://evil.example.com/jwks.json"`), good))
	add("header", "x5u", ed.over(ed.header(`,"x5u":"https://evil.example.com/cert.pem"`), good))
	add("header", "jwk of a stranger", stranger.over(stranger.header(`,"jwk":{"kty":"OKP","crv":"Ed25519","x":"AAAA"}`), good))
	add("header", "kid that is a number", ed.over(`{"alg":"EdDSA","kid":1,"typ":"regent+jwt"}`, good))

	add("key", "kid of a stranger", stranger.of(good))
	add("key", "no kid", ed.over(`{"alg":"EdDSA","kid":"","typ":"regent+jwt"}`, good))
	add("key", "kid of a prototype", ed.over(`{"alg":"EdDSA","kid":"constructor","typ":"regent+jwt"}`, good))
	add("key", "a key of another curve", p384.of(good))
	add("key", "a key for encryption", signer{"for-secrets", "EdDSA", ed.sign}.of(good))
	add("key", "a key for another algorithm", signer{"for-another", "EdDSA", ed.sign}.of(good))
	add("key", "a key that is not on its curve", signer{"malformed", "ES256", ec.sign}.of(good))
	add("key", "a key that is no secret", signer{"shared", "HS256", hs.sign}.of(good))

	add("algorithm", "none, with a signature", signer{ed.id, "none", ed.sign}.of(good))
	add("algorithm", "HS256 with the public key", hs.of(good))
	add("algorithm", "ES256 for an Ed25519 key", signer{ed.id, "ES256", ed.sign}.of(good))
	add("algorithm", "EdDSA for a P-256 key", signer{ec.id, "EdDSA", ec.sign}.of(good))
	add("algorithm", "in lower case", signer{ed.id, "eddsa", ed.sign}.of(good))

	add("signature", "of a stranger, with a known kid", signer{ed.id, "EdDSA", stranger.sign}.of(good))
	add("signature", "of other claims", parts[0]+"."+b64(with(`34`, `35`))+"."+parts[2])
	add("signature", "Ed25519, with a bit changed", altered(ed, func(s []byte) []byte { s[5] ^= 1; return s }).of(good))
	add("signature", "Ed25519, cut off", altered(ed, func(s []byte) []byte { return s[:63] }).of(good))
	add("signature", "Ed25519, written in a second way", altered(ed, addOrder).of(good))
	add("signature", "ES256 in DER", signer{ec.id, "ES256", func(m []byte) []byte { return der(t, ecPrivate, m, crypto.SHA256) }}.of(good))
	add("signature", "ES256, too long", altered(ec, func(s []byte) []byte { return append(s, 0) }).of(good))
	add("signature", "ES256, r and s are zero", fixed("ES256", ec.id, make([]byte, 64)).of(good))
	add("signature", "ES256, r is zero", altered(ec, func(s []byte) []byte { return append(make([]byte, 32), s[32:]...) }).of(good))
	add("signature", "ES256, s is zero", altered(ec, func(s []byte) []byte { return append(s[:32], make([]byte, 32)...) }).of(good))

	add("claims", "no object", ed.of(`34`))
	add("claims", "not JSON", ed.of(good[:50]))
	add("claims", "nested deeply", ed.of(strings.Repeat("[", 5000)))
	add("claims", "spaces", ed.of(with(`"sub":`, `"sub": `)))
	add("claims", "a claim twice", ed.of(with(`"iat":`, `"fencingToken":35,"iat":`)))
	add("claims", "not UTF-8", ed.of(with(`agent@example.com`, "agent\xff")))
	add("claims", "no election", ed.of(with(`"election":"reports",`, ``)))
	add("claims", "no leader", ed.of(with(`"sub":"agent-1",`, ``)))
	add("claims", "no name of an election", ed.of(with(`"election":"reports"`, `"election":"../reports"`)))
	add("claims", "token zero", ed.of(with(`34`, `0`)))
	add("claims", "token negative", ed.of(with(`34`, `-34`)))
	add("claims", "token a float", ed.of(with(`34`, `34.0`)))
	add("claims", "token too big", ed.of(with(`34`, `9007199254740993`)))
	add("claims", "token a text", ed.of(with(`34`, `"34"`)))
	add("claims", "no exp", ed.of(with(`,"exp":1780000030`, ``)))
	add("claims", "exp a float", ed.of(with(`1780000030`, `1780000030.5`)))
	add("claims", "no iat", ed.of(with(`"iat":1780000000,`, ``)))
	add("claims", "ends before it begins", ed.of(strings.NewReplacer("1780000030", "1779999990").Replace(good)))
	add("claims", "lasts longer than any lease", ed.of(strings.NewReplacer("1780000030", "1790000030").Replace(good)))

	asked("expired", "at the end of the lease", ends, "", 0)
	asked("expired", "long after", ends+1e9, "", 0)
	asked("not yet valid", "by a clock that is far behind", issued-5001, "", 0)
	asked("election", "of another election", issued+1000, "invoices", 0)
	asked("token", "with another token", issued+1000, "reports", 35)
	return all
}

// addOrder adds the group's order to the second half of an Ed25519 signature, which must be below
// it: a verifier that does not look takes both.
func addOrder(s []byte) []byte {
	order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	half := make([]byte, 32)
	for i := range half {
		half[i] = s[63-i]
	}
	sum := order.Add(order, new(big.Int).SetBytes(half)).FillBytes(make([]byte, 32))
	for i := range half {
		s[63-i] = sum[i]
	}
	return s
}

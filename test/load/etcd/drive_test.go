package main

import (
	"strings"
	"testing"
	"time"
)

func TestOperationCountsByThePartOfItsTimeInTheRound(t *testing.T) {
	t.Parallel()
	zero := time.Now()
	at := func(s float64) time.Time { return zero.Add(time.Duration(s * float64(time.Second))) }
	round := span{at(10), at(20)}
	for _, c := range []struct{ begin, end, want float64 }{
		{11, 12, 1},
		{10, 20, 1},
		{8, 12, 0.5},
		{19, 23, 0.25},
		{5, 25, 0.5},
		{1, 2, 0},
		{20, 30, 0},
		{15, 15, 0}, // no time at all: the clock's, not an operation's
	} {
		if got := round.part(at(c.begin), at(c.end)); got != c.want {
			t.Errorf("from %v to %v: %v, want %v", c.begin, c.end, got, c.want)
		}
	}
}

func TestPartlyRenewedBatchIsAnError(t *testing.T) {
	t.Parallel()
	lease := `{"election":"e","lease":{"election":"e"}},`
	if n, err := renewed([]byte(strings.Repeat(lease, batchSize))); n != batchSize || err != nil {
		t.Errorf("all: %d, %v", n, err)
	}
	if _, err := renewed([]byte(strings.Repeat(lease, batchSize-1) + `{"election":"e","error":{"code":"LEASE_LOST"}}`)); err == nil {
		t.Error("a renewal that was refused is none")
	}
}

func TestTokenIsPutInWithoutChangingTheLength(t *testing.T) {
	t.Parallel()
	request := []byte(`{"fencingToken":9007199254740991}`)
	token := gap(request, "9007199254740991")
	for _, n := range []string{"123456", "7"} {
		if err := putToken(token, []byte(`{"state":"held","fencingToken":`+n+`,"revision":9}`)); err != nil {
			t.Fatal(err)
		}
		if want := `{"fencingToken":` + strings.Repeat(" ", 16-len(n)) + n + `}`; string(request) != want {
			t.Errorf("got %s, want %s", request, want)
		}
	}
	if err := putToken(token, []byte(`{"state":"vacant"}`)); err == nil {
		t.Error("a grant without a token was taken for one")
	}
}

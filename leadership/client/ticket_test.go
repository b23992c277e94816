package client_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"regent/leadership/client/clienttest"
	"regent/leadership/wire"
)

// ticketing answers each acquire and renewal with a ticket that counts them, and keeps which ticket
// each renewal has brought.
func ticketing(sent *[]string, then func(n int, send func() (*http.Response, error)) (*http.Response, error)) func(*http.Request, func() (*http.Response, error)) (*http.Response, error) {
	n := 0
	return func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		renewal := strings.HasSuffix(r.URL.Path, wire.Renew)
		if !renewal && !strings.HasSuffix(r.URL.Path, wire.Acquire) {
			return send()
		}
		n++
		if renewal {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			var request wire.LeaseRequest
			if err := wire.Unmarshal(body, &request); err != nil {
				return nil, err
			}
			*sent = append(*sent, string(request.Ticket))
		}
		response, err := then(n, send)
		if err != nil || response.StatusCode != http.StatusOK {
			return response, err
		}
		body, _ := io.ReadAll(response.Body)
		body = bytes.TrimSpace(body)
		if n%7 != 0 { // this one has none
			body = append(body[:len(body)-1], fmt.Sprintf(`,"ticket":"t%d"}`, n)...)
		}
		response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		return response, nil
	}
}

func TestTheTicketOfTheLastReplyIsSentWithTheNextRenewal(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		var sent []string
		agent := over(t, server, named("ann"), ticketing(&sent, func(n int, send func() (*http.Response, error)) (*http.Response, error) {
			response, err := send()
			if n == 4 {
				return nil, errLostReply
			}
			return response, err
		}))
		l := lead(t, agent)
		time.Sleep(90 * time.Second)
		l.Resign(t.Context())
		if want := []string{"t1", "t2", "t3", "t3", "t5", "t6", "", "t8"}; len(sent) < len(want) || !slices.Equal(sent[:len(want)], want) {
			t.Errorf("renewals were sent with %q, want %q", sent, want)
		}
	})
}

func TestAServerThatDoesNotKnowTicketsDoesNotCostTheLease(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		var sent []string
		agent := over(t, server, named("ann"), ticketing(&sent, func(_ int, send func() (*http.Response, error)) (*http.Response, error) {
			if len(sent) == 0 || sent[len(sent)-1] == "" {
				return send()
			}
			const problem = `{"type":"about:blank","title":"x","status":400,"code":"INVALID_ARGUMENT","detail":"unknown field \"ticket\"","requestId":"r"}`
			return &http.Response{
				StatusCode: http.StatusBadRequest, Header: http.Header{"Content-Type": {"application/problem+json"}},
				Body: io.NopCloser(strings.NewReader(problem)),
			}, nil
		}))
		l := lead(t, agent)
		time.Sleep(10 * time.Minute)
		if !l.Valid() || l.Token() != 1 {
			t.Errorf("the lease ended: %v", context.Cause(l.Context()))
		}
		assert.True(t, slices.Contains(sent, ""), "no renewal went without a ticket")
		l.Resign(t.Context())
	})
}

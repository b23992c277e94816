package kubernetes_test

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
)

// closed refuses each call with an error.
type closed struct{ err error }

func (c closed) Enter(context.Context, instance.Op) (func(error), error) { return nil, c.err }

// client-go sleeps within a call that is answered with Retry-After and 429 or 5xx, and repeats it
// up to 10 times, a renewal included.
func TestEachCodeIsAStatusOfKubernetesAndOnlyARateLimitSaysWhenToComeAgain(t *testing.T) {
	t.Parallel()
	other := map[leadership.Code]int{
		leadership.InvalidArgument: 422, leadership.ElectionDeleted: 404, leadership.RevisionMismatch: 409,
		leadership.NotEligible: 403, leadership.LimitExceeded: 403, leadership.DepthExceeded: 403,
	}
	for _, m := range wire.Meanings() {
		f := newFixture(t, closed{&leadership.Error{Code: m.Code, Detail: "because", RetryAfter: 60e9}})
		for _, method := range []string{"GET", "PATCH", "DELETE"} {
			body := ""
			if method == "PATCH" {
				body = "{}"
			}
			w := f.send(method, one, body, "Content-Type", "application/merge-patch+json")
			var s object
			if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil {
				t.Fatalf("%s: %v: %s", m.Code, err, w.Body)
			}
			if want := cmp.Or(other[m.Code], m.Status); w.Code != want || s["code"] != float64(want) || s["kind"] != "Status" || s["reason"] == nil || s["message"] == "" {
				t.Errorf("%s of %s: %d %s, want %d", method, m.Code, w.Code, w.Body, want)
			}
			again := ""
			if w.Code == http.StatusTooManyRequests {
				again = "1"
			}
			if got := w.Header().Get("Retry-After"); got != again {
				t.Errorf("%s of %s: Retry-After is %q, want %q", method, m.Code, got, again)
			}
		}
	}
}

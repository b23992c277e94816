package kubernetes_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"regent/httpapi/access/authn"
	"regent/httpapi/access/limit"
	"regent/httpapi/kubernetes"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/service"
)

// A list is one answer, however many Leases there are: a client that is refused would ask for all
// of them again, and be refused again.
func TestAListLargerThanTheRateOfReadsIsAnswered(t *testing.T) {
	const many = 5_000
	f := newFixture(t, limit.New(limit.Config{Limits: func(authn.Principal) limit.Limits { return limit.Limits{Reads: 50} }}))
	s := service.New(f.journal)
	for n := range many {
		if _, err := s.Do(t.Context(), leadership.Configure{Election: leadership.Election(fmt.Sprint("k8s.default.a", n))}); err != nil {
			t.Fatal(err)
		}
	}
	f.pass(time.Hour)
	status, answer := f.do(http.MethodGet, leases, nil)
	if items, _ := answer["items"].([]any); status != http.StatusOK || len(items) != many {
		t.Errorf("status %d, %d Leases, want %d: %v", status, len(items), many, answer["message"])
	}
}

// waited records how long a list of all Leases may take.
type waited struct {
	instance.Service
	most *time.Duration
}

func (w waited) All(ctx context.Context, prefix string) ([]leadership.Lease, error) {
	end, _ := ctx.Deadline()
	*w.most = time.Until(end)
	return w.Service.All(ctx, prefix)
}

func TestAListOfAllMayTakeLongerThanOtherRequests(t *testing.T) {
	f := newFixture(t)
	var most time.Duration
	f.door = kubernetes.New(kubernetes.Config{Service: waited{f.service, &most}, Timeout: time.Minute})
	f.want(http.StatusOK, http.MethodGet, leases, nil)
	if most <= time.Minute {
		t.Errorf("it may take %v, and other requests a minute", most)
	}
}

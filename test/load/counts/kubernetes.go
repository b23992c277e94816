package counts

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"

	"regent/httpapi/kubernetes"
	"regent/leadership/service"
)

// The Lease of the operations at the Kubernetes door.
const (
	leasesPath = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
	leasePath  = leasesPath + "/jobs"
)

// kubernetes lets electors of Kubernetes claim, renew and release a Lease, as client-go does.
func (s *script) kubernetes() error {
	door := kubernetes.New(kubernetes.Config{Service: s.inst, Secret: func(ctx context.Context) ([]byte, error) {
		return service.SharedSecret(ctx, s.handle)
	}})
	var last map[string]any // the Lease in the last answer
	ask := func(want int, method, target, holder string) step {
		return func() error {
			var body []byte
			if method != http.MethodGet {
				meta := map[string]any{"name": "jobs"}
				if method == http.MethodPut {
					meta = maps.Clone(last["metadata"].(map[string]any))
				}
				if holder != "" {
					meta["labels"] = map[string]any{"regent/process": holder}
				}
				body, _ = json.Marshal(map[string]any{"metadata": meta, "spec": map[string]any{"holderIdentity": holder, "leaseDurationSeconds": 3600}})
			}
			r := httptest.NewRequestWithContext(s.ctx, method, target, strings.NewReader(string(body)))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			door.ServeHTTP(w, r)
			if w.Code != want {
				return fmt.Errorf("%s %s: %d %s", method, target, w.Code, w.Body)
			}
			if w.Code < 300 && (strings.HasPrefix(target, leasePath) || method == http.MethodPost) {
				last = nil
				return json.Unmarshal(w.Body.Bytes(), &last)
			}
			return nil
		}
	}
	if _, err := service.SharedSecret(s.ctx, s.handle); err != nil { // created once in the life of a store
		return err
	}
	return all(
		func() error { return s.halts(s.inst) },
		s.counted("Kubernetes: a Lease is created and claimed, and the secret read", ask(http.StatusCreated, http.MethodPost, leasesPath, "ann")),
		s.counted("Kubernetes: renewal", ask(http.StatusOK, http.MethodPut, leasePath, "ann")),
		s.counted("Kubernetes: renewal after it", ask(http.StatusOK, http.MethodPut, leasePath, "ann")),
		s.counted(pollName, ask(http.StatusOK, http.MethodGet, leasePath, "")),
		s.counted("Kubernetes: takeover that is refused", ask(http.StatusConflict, http.MethodPut, leasePath, "bob")),
		s.counted("Kubernetes: release", ask(http.StatusOK, http.MethodPut, leasePath, "")),
		func() error { return s.halts(s.inst) },
		s.counted("Kubernetes: claim of a vacant Lease", ask(http.StatusOK, http.MethodPut, leasePath, "bob")),
	)
}

// pollName names the poll that a waiting elector makes every few seconds.
const pollName = "Kubernetes: poll of a waiting elector"

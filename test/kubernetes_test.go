package test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"regent/httpapi/kubernetes"
)

// leases is where the door for clients of Kubernetes has the Leases of a namespace.
const leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"

// kubeLease is what the tests look at of a Lease, and of an answer that refuses one.
type kubeLease struct {
	Metadata kubeMeta    `json:"metadata,omitzero"`
	Spec     kubeSpec    `json:"spec,omitzero"`
	Code     int         `json:"code,omitempty"`
	Reason   string      `json:"reason,omitempty"`
	Message  string      `json:"message,omitempty"`
	Items    []kubeLease `json:"items,omitempty"`
}

type kubeMeta struct {
	Name            string            `json:"name,omitempty"`
	ResourceVersion string            `json:"resourceVersion,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
}

type kubeSpec struct {
	Holder      string    `json:"holderIdentity"`
	Seconds     int       `json:"leaseDurationSeconds,omitempty"`
	AcquireTime time.Time `json:"acquireTime,omitzero"`
	RenewTime   time.Time `json:"renewTime,omitzero"`
	Transitions int       `json:"leaseTransitions"`
}

// by is the Lease as it was read, for another holder and another time.
func (l kubeLease) by(holder string, seconds int) kubeLease {
	l.Spec.Holder, l.Spec.Seconds = holder, seconds
	return l
}

// kube sends a request to the door, which must answer with the status.
func (s *server) kube(t *testing.T, status int, method, path string, body any) (l kubeLease) {
	t.Helper()
	got, l := s.askKube(t, method, path, body)
	if got != status {
		t.Fatalf("%s %s: %d %+v, want %d\n%s", method, path, got, l, status, s.log)
	}
	return l
}

func (s *server) askKube(t *testing.T, method, path string, body any) (status int, l kubeLease) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+leases+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&l); err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return answer.StatusCode, l
}

// watchKube watches on from a version. next blocks until the next event but bookmarks.
func (s *server) watchKube(t *testing.T, version string) (next func() (kind string, l kubeLease)) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+leases+"?watch=1&resourceVersion="+version, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	events := json.NewDecoder(answer.Body)
	return func() (kind string, l kubeLease) {
		t.Helper()
		var e struct {
			Type   string
			Object kubeLease
		}
		if err := events.Decode(&e); err != nil {
			t.Fatalf("watch: %v\n%s", err, s.log)
		}
		return e.Type, e.Object
	}
}

// An election through the door for clients of Kubernetes, over several instances on each store: the
// instance that a client comes to makes no difference.
func TestALeaseIsTheSameAtEveryInstanceOnEveryStore(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(t *testing.T) (a, b *server, restart func() *server){
		"file": func(t *testing.T) (a, b *server, restart func() *server) {
			in := inFile(t).with("--kubernetes")
			s := in.serve(t)
			return s, s, func() *server { s.kill(); return in.serve(t) }
		},
		"firestore": func(t *testing.T) (a, b *server, restart func() *server) {
			in := inFirestore(t).announcing(newTopic(t)).with("--kubernetes")
			return live(t, in.serve(t)), live(t, in.serve(t)), func() *server { return live(t, in.serve(t)) }
		},
		"spanner": func(t *testing.T) (a, b *server, restart func() *server) {
			in := inSpanner(t).announcing(newTopic(t)).with("--kubernetes")
			return live(t, in.serve(t)), live(t, in.serve(t)), func() *server { return live(t, in.serve(t)) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b, restart := begin(t)
			empty := b.kube(t, 200, "GET", "", nil)
			next := b.watchKube(t, empty.Metadata.ResourceVersion)
			claim := kubeLease{Metadata: kubeMeta{Name: "jobs", Labels: map[string]string{"regent/process": "ann"}}, Spec: kubeSpec{Holder: "ann", Seconds: 3600}}

			ann := a.kube(t, 201, "POST", "", claim)
			if kind, l := next(); kind != "ADDED" || l.Spec.Holder != "ann" || l.Metadata.Annotations["regent/fencing-token"] != "1" {
				t.Errorf("the watch: %s %+v", kind, l)
			}
			b.kube(t, 409, "POST", "", claim)
			renewed := b.kube(t, 200, "PUT", "/jobs", ann)
			if !renewed.Spec.AcquireTime.Equal(ann.Spec.AcquireTime) || !renewed.Spec.RenewTime.After(ann.Spec.RenewTime) || renewed.Spec.Transitions != 0 {
				t.Errorf("renewed at the other instance: %+v, was %+v", renewed, ann)
			}
			a.kube(t, 409, "PUT", "/jobs", ann) // its version is old
			a.kube(t, 409, "PUT", "/jobs", renewed.by("bob", 3600))
			a.kube(t, 403, "PUT", "/jobs", ann.by("", 1))

			c := restart() // an instance that has never heard of it
			renewed = c.kube(t, 200, "PUT", "/jobs", renewed)
			free := c.kube(t, 200, "PUT", "/jobs", renewed.by("", 1))
			if free.Spec.Holder != "" || free.Spec.Transitions != 0 {
				t.Errorf("released: %+v", free)
			}
			if name == "file" {
				a, b = c, c
			} else if kind, l := next(); kind != "MODIFIED" || l.Spec.Holder != "" {
				t.Errorf("the watch: %s %+v", kind, l)
			}
			bob := b.kube(t, 200, "PUT", "/jobs", free.by("bob", 2))
			if bob.Spec.Transitions != 1 || bob.Metadata.Annotations["regent/fencing-token"] != "2" {
				t.Errorf("bob's: %+v", bob)
			}
			eve := a.takeOver(t, "eve", 3600)
			if end := bob.Spec.RenewTime.Add(2 * time.Second); eve.Spec.AcquireTime.Before(end) || eve.Spec.Transitions != 2 {
				t.Errorf("taken over: %+v, before the end at %v", eve, end)
			}
			b.kube(t, 409, "PUT", "/jobs", bob) // a late renewal
			b.kube(t, 200, "DELETE", "/jobs", nil)
			c.kube(t, 409, "POST", "", claim) // the lease lasts, though its election was deleted
			for _, s := range []*server{a, b, c} {
				if list := s.kube(t, 200, "GET", "", nil); len(list.Items) != 0 {
					t.Errorf("a creation that was refused has begun it again: %+v", list)
				}
			}
		})
	}
}

func TestTheDoorForKubernetesKnowsItsCallers(t *testing.T) {
	t.Parallel()
	issuer := newIssuer(t)
	const policy = `
grants:
  - {principals: [candidate@test, rival@test], roles: [candidate], elections: ["k8s.default.*"], candidates: ["ann*"]}
  - {principals: [operator@test], roles: [operator], elections: ["k8s.default.*"]}
`
	a := serveTo(t, issuer, nil, policy, "--auth", "oidc", "--auth-issuer", issuer.URL(), "--kubernetes")
	for _, path := range append(kubernetes.Paths(), leases, leases+"/own", "/apis/apps/v1") {
		for _, token := range []string{"", a.forge("candidate@test")} {
			got := a.ask(token, http.MethodGet, path, "")
			if !strings.Contains(string(got.body), `"reason":"Unauthorized"`) || got.status != 401 || got.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s without a valid token: %d %s", path, got.status, got.body)
			}
		}
	}
	const claim = `{"metadata":{"name":"own"},"spec":{"holderIdentity":"ann","leaseDurationSeconds":3600}}`
	made := a.ask(a.token("candidate@test"), "POST", leases, claim)
	var l kubeLease
	if err := json.Unmarshal([]byte(made.body), &l); err != nil || made.status != 201 {
		t.Fatalf("the candidate's claim: %d %s", made.status, made.body)
	}
	write := func(l kubeLease) string {
		text, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, c := range []struct {
		email, method, path, body string
		status                    int
	}{
		{"stranger@test", "GET", leases + "/own", "", 403},
		{"stranger@test", "POST", leases, claim, 403},
		{"stranger@test", "GET", "/apis", "", 200},
		{"operator@test", "GET", leases, "", 200},
		{"operator@test", "PUT", leases + "/own", write(l), 403},
		{"rival@test", "GET", leases + "/own", "", 200},
		{"rival@test", "GET", leases, "", 403},
		{"rival@test", "PUT", leases + "/own", write(l), 403},
		{"rival@test", "PUT", leases + "/own", write(l.by("", 1)), 403},
		{"candidate@test", "POST", leases, strings.Replace(claim, "ann", "bob", 1), 409},
		{"candidate@test", "POST", leases, strings.NewReplacer("ann", "bob", "own", "new").Replace(claim), 403},
		{"candidate@test", "PUT", leases + "/own", write(l), 200},
	} {
		if got := a.ask(a.token(c.email), c.method, c.path, c.body); got.status != c.status {
			t.Errorf("%s: %s %s: %d %s, want %d", c.email, c.method, c.path, got.status, got.body, c.status)
		}
	}
}

// takeOver tries until the lease is free.
func (s *server) takeOver(t *testing.T, holder string, seconds int) kubeLease {
	t.Helper()
	for {
		now := s.kube(t, 200, "GET", "/jobs", nil)
		status, l := s.askKube(t, http.MethodPut, "/jobs", now.by(holder, seconds))
		switch status {
		case http.StatusOK:
			return l
		case http.StatusConflict:
			time.Sleep(50 * time.Millisecond)
		default:
			t.Fatalf("%s takes over: %d %+v", holder, status, l)
		}
	}
}

package httpfence_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"regent/leadership"
	"regent/leadership/fence"
	"regent/leadership/fence/httpfence"
)

// A service remembers the highest token by itself. What its handler changes lives in this process, so the requests of two leaders are kept apart.
func Example() {
	gate, err := httpfence.New(httpfence.Config{Election: "planner", Marks: new(httpfence.Memory), Serial: true})
	if err != nil {
		panic(err)
	}
	service := httptest.NewServer(gate.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mark, _ := httpfence.FromContext(r.Context())
		fmt.Fprintf(w, "done for the leader with token %d", mark.Token)
	})))
	defer service.Close()

	for _, token := range []leadership.Token{33, 34, 33} {
		lease := leader{fence.Mark{Election: "planner", Token: token}, true} // a *client.Lease, if this were not an example
		commands := &http.Client{Transport: &httpfence.Transport{Leader: lease}}
		reply, err := commands.Post(service.URL, "text/plain", strings.NewReader("mow the lawn"))
		if err != nil {
			panic(err)
		}
		defer reply.Body.Close()
		if err := httpfence.Refusal(reply); err != nil {
			fmt.Println(reply.StatusCode, err)
			continue
		}
		said, _ := io.ReadAll(reply.Body)
		fmt.Println(reply.StatusCode, string(said))
	}
	// Output:
	// 200 done for the leader with token 33
	// 200 done for the leader with token 34
	// 409 TOKEN_STALE: fencing token 33 of election "planner" is stale, a leader with token 34 has written; stop acting as leader
}

// regent is one whose planner has the token 34; a *client.Client, if this were not an example.
type regent struct{}

func (regent) CheckToken(_ context.Context, r leadership.TokenCheck) (leadership.Lease, error) {
	fmt.Println("Regent is asked about token", r.Token)
	l := leadership.Lease{Election: "planner", State: leadership.Held, LeaderID: "ann", Token: 34, ExpiresIn: 30 * time.Second}
	if r.Token != l.Token {
		return leadership.Lease{}, &leadership.Error{Code: leadership.TokenStale, Lease: &l, Detail: "stop acting as leader"}
	}
	return l, nil
}

// A service that keeps nothing asks Regent. With a *client.Client, news comes by a Watch:
//
//	for news, err := range regent.Watch(ctx, client.WatchRequest{Election: "planner"}) {
//		switch {
//		case err != nil:
//			return err
//		case news.Event != nil:
//			checks.Heard(*news.Event)
//		case news.Lease != nil:
//			checks.Saw(*news.Lease)
//		}
//	}
func ExampleChecks() {
	checks, err := httpfence.NewChecks(httpfence.ChecksConfig{Regent: regent{}})
	if err != nil {
		panic(err)
	}
	defer checks.Wait()
	gate, err := httpfence.New(httpfence.Config{Election: "planner", Check: checks})
	if err != nil {
		panic(err)
	}
	service := gate.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))

	for _, token := range []string{"34", "34", "33", "034"} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header.Set(httpfence.ElectionHeader, "planner")
		r.Header.Set(httpfence.TokenHeader, token)
		reply := httptest.NewRecorder()
		service.ServeHTTP(reply, r)
		fmt.Println(token, reply.Code)
	}
	checks.Heard(leadership.Event{Election: "planner", Token: 35, Type: leadership.EventAcquired, LeaderID: "bob"})
	fmt.Println(checks.Check(context.Background(), fence.Mark{Election: "planner", Token: 34}))
	// Output:
	// Regent is asked about token 34
	// 34 204
	// 34 204
	// 33 409
	// 034 400
	// TOKEN_STALE: fencing token 34 of election "planner" is stale: 35 has been granted since; stop acting as leader
}

// Without a Transport the headers are set on each request.
func ExampleSetHeaders() {
	lease := leader{fence.Mark{Election: "planner", Token: 34}, false}
	r, _ := http.NewRequest(http.MethodPost, "https://service.test/", nil)
	err := httpfence.SetHeaders(r.Header, lease)
	fmt.Println(errors.Is(err, leadership.LeaseLost), err)
	// Output:
	// true LEASE_LOST: the lease of election "planner" with fencing token 34 is over, and nothing was sent; stop acting as leader
}

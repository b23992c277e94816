package httpfence_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/fence"
	"regent/leadership/fence/httpfence"
)

// A service remembers the highest token itself. Its handler changes only state of this process, so
// it compares the token once more under the lock of that state.
func Example() {
	gate, err := httpfence.New(httpfence.Config{Election: "planner", Marks: new(httpfence.Memory)})
	if err != nil {
		panic(err)
	}
	var garden struct {
		sync.Mutex
		newest fence.Mark
	}
	service := httptest.NewServer(gate.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mark, _ := httpfence.FromContext(r.Context())
		garden.Lock()
		defer garden.Unlock()
		newest, err := garden.newest.Admit(mark)
		if err != nil { // another leader's request has overtaken this one
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		garden.newest = newest
		fmt.Fprintf(w, "done for the leader with token %d", mark.Token)
	})))
	defer service.Close()

	for _, token := range []leadership.Token{33, 34, 33} {
		// outside an example: a *client.Lease
		lease := leader{fence.Mark{Election: "planner", Token: token}, true}
		commands := &http.Client{Transport: &httpfence.Transport{Leader: lease}}
		reply, err := commands.Post(service.URL, "text/plain", strings.NewReader("mow the lawn"))
		if err != nil {
			panic(err)
		}
		defer reply.Body.Close()
		if err := httpfence.Refusal(reply); err != nil {
			fmt.Println(reply.StatusCode, errors.Is(err, leadership.TokenStale))
			continue
		}
		said, _ := io.ReadAll(reply.Body)
		fmt.Println(reply.StatusCode, string(said))
	}
	// Output:
	// 200 done for the leader with token 33
	// 200 done for the leader with token 34
	// 409 true
}

// regent says that the planner's leader has token 34; outside an example, use a *client.Client.
type regent struct{}

func (regent) CheckToken(_ context.Context, r leadership.TokenCheck) (leadership.Lease, error) {
	fmt.Println("Regent is asked about token", r.Token)
	l := leadership.Lease{Election: "planner", State: leadership.Held, LeaderID: "ann", Token: 34, ExpiresIn: 30 * time.Second}
	if r.Token != l.Token {
		return leadership.Lease{}, &leadership.Error{Code: leadership.TokenStale, Lease: &l, Detail: "stop acting as leader"}
	}
	return l, nil
}

// A service without storage asks Regent. With a *client.Client, a Watch brings news:
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
	err = checks.Check(context.Background(), fence.Mark{Election: "planner", Token: 34})
	fmt.Println(errors.Is(err, leadership.TokenStale))
	// Output:
	// Regent is asked about token 34
	// 34 204
	// 34 204
	// 33 409
	// 034 400
	// true
}

// Without a Transport, set the headers on each request.
func ExampleSetHeaders() {
	lease := leader{fence.Mark{Election: "planner", Token: 34}, false}
	r, _ := http.NewRequest(http.MethodPost, "https://service.test/", nil)
	err := httpfence.SetHeaders(r.Header, lease)
	fmt.Println(errors.Is(err, leadership.LeaseLost))
	// Output:
	// true
}

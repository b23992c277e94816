package limit_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"regent/httpapi"
	"regent/httpapi/access/limit"
	"regent/leadership/wire"
)

// bodies runs a test in a bubble, on an API whose bodies may take 32 MiB, 4 MiB for each principal.
func bodies(t *testing.T, test func(*testing.T, http.Handler)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bound := limit.NewBodies(0, func(context.Context, bool) {})
		admit := func(ctx context.Context, ask wire.Admission) (context.Context, func(), error) {
			done, err := bound.Enter(ctx, ask.Body)
			return ctx, done, err
		}
		test(t, httpapi.New(httpapi.Config{Service: serve(t), Admit: admit}))
	})
}

// endless sends a body that ends when the test closes it. answered is closed with the reply.
func endless(t *testing.T, h http.Handler, who, path string, length int64) (end *io.PipeWriter, reply *httptest.ResponseRecorder, answered chan struct{}) {
	t.Helper()
	out, in := io.Pipe()
	r := httptest.NewRequestWithContext(by(t.Context(), who), http.MethodPost, path, out)
	r.ContentLength = length
	r.Header.Set("Content-Type", wire.ContentType)
	reply, answered = httptest.NewRecorder(), make(chan struct{})
	go func() {
		defer close(answered)
		defer out.Close()
		h.ServeHTTP(reply, r)
	}()
	synctest.Wait()
	return in, reply, answered
}

func TestBodiesThatDoNotEndAreBoundedForAPrincipal(t *testing.T) {
	for name, length := range map[string]int64{"with a length": wire.MaxBatchBody, "without one": -1, "with a lie": 1 << 40} {
		t.Run(name, func(t *testing.T) {
			bodies(t, func(t *testing.T, h http.Handler) {
				if length > wire.MaxBatchBody {
					if _, reply, _ := endless(t, h, "ann", wire.PathBatchRenew, length); reply.Code != http.StatusRequestEntityTooLarge {
						t.Errorf("status %d, want 413", reply.Code)
					}
					return
				}
				var open []*io.PipeWriter
				for i := 0; ; i++ {
					in, reply, answered := endless(t, h, "ann", wire.PathBatchRenew, length)
					select {
					case <-answered:
						if reply.Code != http.StatusTooManyRequests || reply.Header().Get("Retry-After") == "" || reply.Header().Get("Connection") != "close" {
							t.Fatalf("body %d: %d %v %s", i, reply.Code, reply.Header(), reply.Body)
						}
						if i != 2 {
							t.Errorf("%d bodies are under way, want 2 of 2 MiB", i)
						}
					default:
						open = append(open, in)
						continue
					}
					break
				}
				check := func(who string, bytes int) int {
					reply, _ := sendAs(t, h, who, wire.PathBatchCheckTokens, `{"checks":[{"election":"reports","fencingToken":1}]`+strings.Repeat(" ", bytes)+`}`)
					return reply.Code
				}
				if got := check("ann", wire.MaxBody); got != http.StatusTooManyRequests {
					t.Errorf("one more body of the same principal: %d", got)
				}
				if got := check("ann", 0); got != http.StatusOK {
					t.Errorf("a small one: %d", got)
				}
				if got := check("bob", wire.MaxBody); got != http.StatusOK {
					t.Errorf("the body of another principal: %d", got)
				}
				for _, in := range open {
					in.Close()
				}
				synctest.Wait()
				if got := check("ann", wire.MaxBody); got != http.StatusOK {
					t.Errorf("after the bodies have ended: %d", got)
				}
			})
		})
	}
}

func TestBodiesOfAllPrincipalsAreBounded(t *testing.T) {
	bodies(t, func(t *testing.T, h http.Handler) {
		under := 0
		for who := range strings.SplitSeq("abcdefghij", "") {
			for range 2 {
				in, _, answered := endless(t, h, who, wire.PathBatchRenew, -1)
				defer in.Close()
				select {
				case <-answered:
				default:
					under++
				}
			}
		}
		if under != 16 {
			t.Errorf("%d bodies of 2 MiB are under way, want 16", under)
		}
	})
}

// A waiting candidate's body is dropped when it has been read.
func TestAWaitingCandidateHoldsNoBody(t *testing.T) {
	bodies(t, func(t *testing.T, h http.Handler) {
		if reply, _ := sendAs(t, h, "bob", wire.Path("reports", wire.Acquire), `{"candidateId":"bob"}`); reply.Code != http.StatusOK {
			t.Fatal(reply.Body)
		}
		for range 4 << 20 / wire.MaxBody {
			in, _, _ := endless(t, h, "ann", wire.Path("reports", wire.Acquire), -1)
			go func() {
				io.WriteString(in, `{"candidateId":"ann","wait":"1s"}`)
				in.Close()
			}()
		}
		synctest.Wait()
		if reply, _ := sendAs(t, h, "ann", wire.Path("reports", wire.Acquire), `{"candidateId":"ann"}`); reply.Code != http.StatusConflict {
			t.Errorf("%d %s", reply.Code, reply.Body)
		}
	})
}

package limit_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"regent/httpapi"
	"regent/httpapi/access/limit"
	"regent/leadership/instance"
	"regent/leadership/wire"
)

// api runs a test in a synctest bubble, on an API whose principals have the limits.
func api(t *testing.T, limits limit.Limits, test func(*testing.T, http.Handler)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := limit.New(limit.Config{Limits: always(limits)})
		admit := func(ctx context.Context, ask wire.Admission) (context.Context, func(), error) {
			ctx, err := gate.Admit(ctx, instance.Op{Row: ask.Row, Election: ask.Election, N: 1, Bytes: int(ask.Body)})
			return ctx, func() {}, err
		}
		test(t, httpapi.New(httpapi.Config{Service: instance.Guard(serve(t), gate), Admit: admit}))
	})
}

// body counts how often it is read.
type body struct {
	io.Reader
	reads int
}

func (b *body) Read(p []byte) (int, error) {
	b.reads++
	return b.Reader.Read(p)
}

// send posts the text as ann, and reports whether it was read.
func send(t *testing.T, h http.Handler, path, text string) (reply *httptest.ResponseRecorder, read bool) {
	t.Helper()
	return sendAs(t, h, "ann", path, text)
}

func sendAs(t *testing.T, h http.Handler, who, path, text string) (reply *httptest.ResponseRecorder, read bool) {
	t.Helper()
	sent := &body{Reader: strings.NewReader(text)}
	r := httptest.NewRequestWithContext(by(t.Context(), who), http.MethodPost, path, sent)
	r.ContentLength = int64(len(text))
	r.Header.Set("Content-Type", wire.ContentType)
	reply = httptest.NewRecorder()
	h.ServeHTTP(reply, r)
	return reply, sent.reads > 0
}

func TestMalformedBodiesCountAndAreNotReadBeyondTheLimit(t *testing.T) {
	malformed := `{"renewals":[` + strings.Repeat("{},", 80_000)
	api(t, limit.Limits{Renewals: 10}, func(t *testing.T, h http.Handler) {
		read := 0
		for i := range 100 {
			reply, was := send(t, h, wire.PathBatchRenew, malformed)
			if want := http.StatusBadRequest; i < 20 && reply.Code != want {
				t.Fatalf("call %d: status %d, want %d: %s", i, reply.Code, want, reply.Body)
			} else if want := http.StatusTooManyRequests; i >= 20 && (reply.Code != want || reply.Header().Get("Retry-After") == "") {
				t.Fatalf("call %d: status %d, want %d: %s", i, reply.Code, want, reply.Body)
			}
			if was {
				read++
			}
		}
		if read != 20 {
			t.Errorf("%d bodies were read, want the 20 of two seconds", read)
		}
	})
}

// Decoding large bodies, even malformed ones, must be limited like storing them.
func TestLargeBodiesAreNotReadBeyondTheRateOfBytes(t *testing.T) {
	holder := `{"candidateId":"ann","key":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8","fencingToken":1,"after":0,"entries":[{"data":"` + strings.Repeat("x", 63_800)
	for name, body := range map[string]string{"malformed": holder, "in order": holder + `"}]}`} {
		t.Run(name, func(t *testing.T) {
			api(t, limit.Limits{Bytes: 64_000}, func(t *testing.T, h http.Handler) {
				path := wire.Path("reports", wire.JournalPath+wire.Append)
				for i := range 10 {
					reply, read := send(t, h, path, body)
					if comesIn := i < 8; read != comesIn || (reply.Code != http.StatusTooManyRequests) != comesIn {
						t.Errorf("call %d: status %d, its body was read: %t; want the 8 bodies of eight seconds read, and no more", i, reply.Code, read)
					}
				}
				if _, read := send(t, h, wire.Path("reports", wire.Acquire), `{"candidateId":"ann"}`); !read {
					t.Error("other calls are refused, too")
				}
			})
		})
	}
}

func TestACallCountsOnce(t *testing.T) {
	api(t, limit.Limits{Campaigns: 10}, func(t *testing.T, h http.Handler) {
		done := 0
		for range 30 {
			if reply, _ := send(t, h, wire.Path("reports", wire.Acquire), `{"candidateId":"ann"}`); reply.Code != http.StatusTooManyRequests {
				done++
			}
		}
		if done != 20 {
			t.Errorf("%d calls came in, want the 20 of two seconds", done)
		}
	})
}

// A batch larger than the bucket needs a full bucket. The tokens that it paid before its body was
// read must not keep it out for ever.
func TestARefusedBatchComesInWhenItWasTold(t *testing.T) {
	batch := `{"renewals":[` + strings.TrimSuffix(strings.Repeat(`{"election":"e","candidateId":"c","key":"x","fencingToken":1},`, 500), ",") + `]}`
	batch = strings.ReplaceAll(batch, `"key":"x"`, `"key":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"`)
	api(t, limit.Limits{Renewals: 10}, func(t *testing.T, h http.Handler) {
		if reply, _ := send(t, h, wire.PathBatchRenew, batch); reply.Code == http.StatusTooManyRequests {
			t.Fatalf("the first: %s", reply.Body)
		}
		refused := 0
		for ; ; refused++ {
			reply, _ := send(t, h, wire.PathBatchRenew, batch)
			if reply.Code != http.StatusTooManyRequests {
				break
			}
			p, err := wire.DecodeProblem(reply.Body.Bytes())
			if err != nil || refused > 3 {
				t.Fatalf("refused %d times, the last time with %s (%v)", refused+1, reply.Body, err)
			}
			time.Sleep(time.Duration(p.RetryAfterMs) * time.Millisecond)
		}
		if refused == 0 {
			t.Error("the second came in at once")
		}
	})
}

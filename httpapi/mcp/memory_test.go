package mcp_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// It is not parallel: other tests would fill the heap, too.
func TestNothingIsKeptOfALeadThatHasEnded(t *testing.T) {
	const rounds, most = 100, 10 // objects for a round: the store keeps its events, which are about 3
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{t: t, store: newStore(), start: time.Now()}
		door := f.door()
		call := func(tool string, in args, want string) (answer string) {
			t.Helper()
			body, err := json.Marshal(args{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": args{"name": tool, "arguments": in}})
			require.NoError(t, err)
			_, answer = post(t.Context(), door, "POST", string(body), nil)
			if !strings.Contains(answer, want) {
				t.Fatalf("%s: %s", tool, answer)
			}
			return answer
		}
		lead := func() {
			for i := range rounds {
				in := args{"election": fmt.Sprint("e", i%20), "candidateId": "ann", "leaseDuration": "1h"}
				_, handle, _ := strings.Cut(call("lead", in, `"leading":true`), `"handle":"`)
				handle, _, _ = strings.Cut(handle, `"`)
				in["candidateId"] = "bob"
				call("lead", in, "LEASE_HELD")
				call("stop_leading", args{"handle": handle}, `"stopped":true`)
			}
		}
		live := func() (objects, goroutines int) {
			time.Sleep(2 * time.Hour) // so that no timer of those leases is left
			synctest.Wait()
			runtime.GC()
			runtime.GC() // pools keep what they have for one more
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int(m.HeapObjects), runtime.NumGoroutine()
		}
		lead() // the first call allocates more
		objects, goroutines := live()
		lead()
		after, running := live()
		if more := after - objects; more > rounds*most || running > goroutines {
			t.Errorf("%d leads have left %d objects and %d goroutines behind", rounds, more, running-goroutines)
		}
	})
}

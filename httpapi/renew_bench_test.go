package httpapi_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"regent/httpapi"
	"regent/leadership"
	"regent/leadership/wire"
	"regent/store/memory"
)

// BenchmarkRenewal reports what a renewal costs a server: net/http, the API and the memory store.
// The leaders are another process, so that cpu-ns/op is the server's alone.
func BenchmarkRenewal(b *testing.B) {
	const leaders = 8
	if target := os.Getenv("REGENT_BENCH_RENEWALS"); target != "" {
		renewMany(b, target, leaders)
		return
	}
	c := &clock{now: time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)}
	server := httptest.NewServer(httpapi.New(httpapi.Config{
		Service: newInstance(b, memory.New(memory.Config{Now: c.Now}), c),
		Log:     slog.New(slog.DiscardHandler),
	}))
	defer server.Close()
	for i := range leaders {
		path := server.URL + wire.Path(benchElection(i), wire.Acquire)
		body := `{"candidateId":"agent-7","key":"` + key + `","metadata":{"address":"10.0.0.7:8080","zone":"europe-west1-b"}}`
		response, err := http.Post(path, wire.ContentType, strings.NewReader(body))
		if err != nil || response.StatusCode != http.StatusOK {
			b.Fatal(response, err)
		}
		response.Body.Close()
	}
	client := exec.CommandContext(b.Context(), os.Args[0], "-test.run=^$", "-test.bench=^BenchmarkRenewal$", "-test.benchtime=1x")
	client.Env = append(os.Environ(), "REGENT_BENCH_RENEWALS="+strconv.Itoa(b.N)+" "+server.Listener.Addr().String())
	before := processorTime(b)
	b.ResetTimer()
	out, err := client.CombinedOutput()
	b.StopTimer()
	if err != nil || !strings.Contains(string(out), "PASS") {
		b.Fatalf("%v: %s", err, out)
	}
	b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
}

func benchElection(i int) leadership.Election {
	return leadership.Election(fmt.Sprintf("planner-%d", i))
}

// renewMany renews as several leaders, on a connection each. target is how often, and at which
// address.
func renewMany(b *testing.B, target string, leaders int) {
	count, address, _ := strings.Cut(target, " ")
	n, err := strconv.Atoi(count)
	if err != nil {
		b.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range leaders {
		all.Go(func() {
			share := n / leaders
			if i < n%leaders {
				share++
			}
			if err := renewOn(address, benchElection(i), share); err != nil {
				b.Error(err)
			}
		})
	}
	all.Wait()
}

func renewOn(address string, e leadership.Election, times int) error {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer connection.Close()
	request := fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nAccept: application/json\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		wire.Path(e, wire.Renew), address, len(asLeader), asLeader)
	replies := bufio.NewReader(connection)
	for range times {
		if _, err := connection.Write(request); err != nil {
			return err
		}
		reply, err := http.ReadResponse(replies, nil)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, reply.Body); err != nil || reply.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d, %v", reply.StatusCode, err)
		}
	}
	return nil
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

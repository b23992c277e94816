package test

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"regent/emulators"
	"regent/httpapi"
	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/instance"
	"regent/leadership/wire"
	"regent/store"
	"regent/test/proxy"
)

// crowdServers are the instances that a crowd connects to.
type crowdServers struct {
	servers []string           // host:port
	clients []*client.Client   // of each
	calls   func() proxy.Calls // of the store, since the last time; nil if they are not counted
	memory  func() memory      // of all instances together
}

// memory has bytes by their use.
type memory map[string]int64

func (m memory) minus(other memory) memory {
	less := memory{}
	for what, bytes := range m {
		less[what] = bytes - other[what]
	}
	return less
}

// per describes the share of each of n.
func (m memory) per(n int) string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%.1f KiB %s", float64(m[what])/float64(n)/1024, what))
	}
	return strings.Join(parts, ", ")
}

// serveInProcess starts one instance on a file, in this process, where its calls of the store and
// its memory can be measured.
func serveInProcess(t testing.TB) crowdServers {
	t.Helper()
	in := inBolt(t)
	leases, err := store.Open(t.Context(), in.args[len(in.args)-1], store.Config{})
	if err != nil {
		t.Fatal(err)
	}
	counted := &countedStore{Store: leases, calls: proxy.Calls{}}
	inst, err := instance.New(instance.Config{Store: counted, Name: "regent-test", Alone: true})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := httpapi.Server(httpapi.New(httpapi.Config{Service: inst, StreamLimit: time.Hour}))
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { inst.Run(ctx) })
	running.Go(func() { server.Serve(listener) })
	t.Cleanup(func() {
		inst.Drain(ctx, wire.Draining)
		server.Close()
		cancel()
		running.Wait()
		leases.Close()
	})
	address := listener.Addr().String()
	return crowdServers{servers: []string{address}, clients: []*client.Client{clientOf(t, address)}, calls: counted.take, memory: collected}
}

func clientOf(t testing.TB, address string) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{Server: "http://" + address})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// collected is the memory of this process after a collection.
func collected() memory {
	for range 4 { // each at most halves the stack of a goroutine
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return memory{"of heap": int64(m.HeapAlloc), "of stacks": int64(m.StackInuse)}
}

// serveProcesses starts instances in processes of their own.
func serveProcesses(t testing.TB, in place, n int) crowdServers {
	t.Helper()
	s := crowdServers{calls: func() proxy.Calls { return nil }}
	var processes []*server
	for range n {
		p := live(t, in.with("--stream-limit", "1h").serve(t))
		processes = append(processes, p)
		s.servers = append(s.servers, strings.TrimPrefix(p.URL, "http://"))
		s.clients = append(s.clients, p.client)
	}
	s.memory = func() memory {
		var bytes int64
		for _, p := range processes {
			bytes += resident(t, p.cmd.Process.Pid)
		}
		return memory{"resident": bytes}
	}
	return s
}

// serveInFirestore starts several instances on the emulators, and counts their calls of the store.
func serveInFirestore(t testing.TB, n int) crowdServers {
	t.Helper()
	counter := proxy.NewCounter(t, emulators.Firestore(t))
	s := serveProcesses(t, atFirestore(t, counter.Addr()).announcing(newTopic(t)), n)
	s.calls = counter.Take
	return s
}

func oneInFirestore(t testing.TB) crowdServers { return serveInFirestore(t, 1) }
func twoInFirestore(t testing.TB) crowdServers { return serveInFirestore(t, 2) }
func oneInBolt(t testing.TB) crowdServers      { return serveProcesses(t, inBolt(t), 1) }

// resident is the memory of a process, in bytes.
func resident(t testing.TB, pid int) int64 {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var kilobytes int64
		if n, _ := fmt.Sscanf(lines.Text(), "Rss: %d kB", &kilobytes); n == 1 {
			return kilobytes << 10
		}
	}
	t.Fatalf("the memory of process %d is not told", pid)
	return 0
}

// files is how many files a process may have open here.
func files(t testing.TB) int {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	return int(limit.Max)
}

// countedStore counts the calls of a store.
type countedStore struct {
	leadership.Store

	mu    sync.Mutex // guards calls
	calls proxy.Calls
}

func (s *countedStore) count(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[name]++
}

func (s *countedStore) take() proxy.Calls {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.calls
	s.calls = proxy.Calls{}
	return taken
}

func (s *countedStore) Update(ctx context.Context, e leadership.Election, decide func(leadership.Snapshot) (leadership.Change, error)) (leadership.Snapshot, error) {
	s.count("Update")
	return s.Store.Update(ctx, e, decide)
}

func (s *countedStore) Get(ctx context.Context, e leadership.Election) (leadership.Snapshot, error) {
	s.count("Get")
	return s.Store.Get(ctx, e)
}

func (s *countedStore) List(ctx context.Context, prefix string, after leadership.Election, limit int) (leadership.Listing, error) {
	s.count("List")
	return s.Store.List(ctx, prefix, after, limit)
}

func (s *countedStore) Renew(ctx context.Context, leases []leadership.Renewal) []leadership.Renewed {
	s.count("Renew")
	return s.Store.Renew(ctx, leases)
}

func (s *countedStore) Events(ctx context.Context, e leadership.Election, after leadership.Revision, limit int) ([]leadership.Event, error) {
	s.count("Events")
	return s.Store.Events(ctx, e, after, limit)
}

func (s *countedStore) Since(ctx context.Context, after time.Time, limit int) (leadership.Recent, error) {
	s.count("Since")
	return s.Store.Since(ctx, after, limit)
}

func (s *countedStore) Unannounced(ctx context.Context, e leadership.Election, limit int) ([]leadership.Event, error) {
	s.count("Unannounced")
	return s.Store.Unannounced(ctx, e, limit)
}

func (s *countedStore) MarkAnnounced(ctx context.Context, ids []leadership.EventID) error {
	s.count("MarkAnnounced")
	return s.Store.MarkAnnounced(ctx, ids)
}

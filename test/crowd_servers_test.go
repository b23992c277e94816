package test

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"regent/emulators"
	"regent/leadership/client"
	"regent/store"
	"regent/store/storetest"
	"regent/test/proxy"
)

// crowdServers are the instances that a crowd connects to.
type crowdServers struct {
	servers []string           // host:port
	clients []*client.Client   // of each
	calls   func() proxy.Calls // of the store, since the last time; nil if they are not counted
	memory  func() memory      // of all instances together
	logs    func() string      // of instances in processes of their own
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
	in := inFile(t)
	leases, err := store.Open(t.Context(), in.args[len(in.args)-1], store.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { leases.Close() })
	var counter storetest.Counter
	address := host(t, &storetest.Fake{Store: leases, Around: counter.Count})
	return crowdServers{servers: []string{address}, clients: []*client.Client{clientOf(t, address)}, calls: func() proxy.Calls { return counter.Take() }, memory: collected, logs: func() string { return "" }}
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
	s.logs = func() (all string) {
		for _, p := range processes {
			all += p.URL + ":\n" + p.log.String()
		}
		return all
	}
	return s
}

// twoInFirestore starts two instances on the emulators, and counts their calls of the store.
func twoInFirestore(t testing.TB) crowdServers {
	t.Helper()
	counter := proxy.NewCounter(t, emulators.Firestore(t))
	s := serveProcesses(t, atFirestore(t, counter.Addr()).announcing(newTopic(t)), 2)
	s.calls = counter.Take
	return s
}

func oneInFile(t testing.TB) crowdServers { return serveProcesses(t, inFile(t), 1) }

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

package test

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

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
	memory  func() int64       // of all instances together, in bytes; 0 in this process
	logs    func() string      // of instances in processes of their own
}

// serveInProcess starts one instance on a file, in this process, where its calls of the store are
// counted.
func serveInProcess(t testing.TB) crowdServers {
	t.Helper()
	in := inFile(t)
	leases, err := store.Open(t.Context(), in.args[len(in.args)-1], store.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { leases.Close() })
	var counter storetest.Counter
	address := host(t, &storetest.Fake{Store: leases, Around: counter.Count})
	return crowdServers{servers: []string{address}, clients: []*client.Client{clientOf(t, address)}, calls: func() proxy.Calls { return counter.Take() }, memory: func() int64 { return 0 }, logs: func() string { return "" }}
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
	s.memory = func() (bytes int64) {
		for _, p := range processes {
			bytes += resident(t, p.cmd.Process.Pid)
		}
		return bytes
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

// twoInSpanner is twoInFirestore in the other store.
func twoInSpanner(t testing.TB) crowdServers {
	t.Helper()
	counter := proxy.NewCounter(t, emulators.Spanner(t))
	s := serveProcesses(t, inSpanner(t).withEnv("SPANNER_EMULATOR_HOST="+counter.Addr()).announcing(newTopic(t)), 2)
	s.calls = counter.Take
	return s
}

func oneInFile(t testing.TB) crowdServers { return serveProcesses(t, inFile(t), 1) }

// resident is the memory of a process, in bytes.
func resident(t testing.TB, pid int) int64 {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	require.NoError(t, err)
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
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	return int(limit.Max)
}

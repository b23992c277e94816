package httpapi

import (
	"math"
	"testing"
	"testing/fstest"
)

func TestConnectionsFitIntoHalfOfTheMemory(t *testing.T) {
	t.Parallel()
	const none, mib = math.MaxInt64, int64(1 << 20)
	text := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	for name, c := range map[string]struct {
		files   fstest.MapFS
		goLimit int64
		want    int64
	}{
		"nothing is known":          {nil, none, none},
		"GOMEMLIMIT":                {nil, 100 * mib, 100 * mib},
		"the machine":               {fstest.MapFS{"proc/meminfo": text("MemTotal:         524288 kB\nMemFree: 1 kB\n")}, none, 512 * mib},
		"a machine that says none":  {fstest.MapFS{"proc/meminfo": text("MemFree: 1 kB\n")}, none, none},
		"a group of version 2":      {fstest.MapFS{"proc/self/cgroup": text("0::/a/b\n"), "sys/fs/cgroup/a/b/memory.max": text("268435456\n")}, none, 256 * mib},
		"the group above it":        {fstest.MapFS{"proc/self/cgroup": text("0::/a/b\n"), "sys/fs/cgroup/a/b/memory.max": text("max\n"), "sys/fs/cgroup/a/memory.max": text("134217728\n")}, none, 128 * mib},
		"a container of version 2":  {fstest.MapFS{"proc/self/cgroup": text("0::/\n"), "sys/fs/cgroup/memory.max": text("67108864\n")}, none, 64 * mib},
		"a group of version 1":      {fstest.MapFS{"proc/self/cgroup": text("5:cpu,cpuacct:/a\n4:memory:/a\n0::/\n"), "sys/fs/cgroup/memory/a/memory.limit_in_bytes": text("33554432\n")}, none, 32 * mib},
		"a container of version 1":  {fstest.MapFS{"proc/self/cgroup": text("4:memory:/docker/abc\n"), "sys/fs/cgroup/memory/memory.limit_in_bytes": text("16777216\n")}, none, 16 * mib},
		"a group without a limit":   {fstest.MapFS{"proc/self/cgroup": text("4:memory:/\n"), "sys/fs/cgroup/memory/memory.limit_in_bytes": text("9223372036854771712\n")}, none, 9223372036854771712},
		"a folder outside the root": {fstest.MapFS{"proc/self/cgroup": text("0::/../../a\n"), "sys/fs/cgroup/a/memory.max": text("8388608\n")}, none, 8 * mib},
		"the least of all":          {fstest.MapFS{"proc/meminfo": text("MemTotal: 524288 kB\n"), "proc/self/cgroup": text("0::/\n"), "sys/fs/cgroup/memory.max": text("268435456\n")}, 400 * mib, 256 * mib},
		"files that are damaged":    {fstest.MapFS{"proc/meminfo": text("MemTotal: x kB\n"), "proc/self/cgroup": text("0\n::\n0::/\n"), "sys/fs/cgroup/memory.max": text("-1\n")}, none, none},
	} {
		if got := memoryLimit(c.files, c.goLimit); got != c.want {
			t.Errorf("%s: %d bytes, want %d", name, got, c.want)
		}
	}
	for limit, want := range map[int64]int{mib: minConnections, 512 * mib: 4096, 16 << 30: 131072, none: math.MaxInt32} {
		if got := mostByMemory(limit); got != want {
			t.Errorf("in %d bytes: %d connections, want %d", limit, got, want)
		}
	}
	if got := MostConnections(); got < minConnections {
		t.Errorf("here: %d connections", got)
	}
}

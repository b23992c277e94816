package httpapi

import (
	"bytes"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// connectionMemory is how much memory a connection may take. Measured with 10,000 of each: 34 KiB
// with a waiting candidate, 59 KiB with a stream.
const connectionMemory = 64 << 10

// minConnections is allowed even with very little memory.
const minConnections = 64

// MostConnections returns how many connections a server may have: as many as the process may open
// files for and fit into half of its memory.
func MostConnections() int {
	return min(mostByFiles(), mostByMemory(MemoryLimit()))
}

// MemoryLimit returns how much memory this process may have; see memoryLimit.
func MemoryLimit() int64 { return memoryLimit(os.DirFS("/"), debug.SetMemoryLimit(-1)) }

func mostByMemory(limit int64) int {
	return int(min(max(limit/2/connectionMemory, minConnections), math.MaxInt32))
}

// memoryLimit returns how much memory the process may have, in bytes: the least of GOMEMLIMIT, the
// limit of its control group, and the machine's memory. root is the file system; without /proc and
// /sys there only GOMEMLIMIT counts.
func memoryLimit(root fs.FS, goLimit int64) int64 {
	return min(goLimit, groupMemory(root), machineMemory(root))
}

// groupMemory returns the least limit of the process's control group and the groups above it, of
// version 1 or 2.
func groupMemory(root fs.FS) int64 {
	least := int64(math.MaxInt64)
	text, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(text)) {
		// number:controllers:folder; version 2 has no controllers
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			continue
		}
		top, file := "sys/fs/cgroup", "memory.max"
		switch parts[1] {
		case "":
		case "memory":
			top, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		// In a container, a folder of the machine may be missing: the one above it counts.
		for dir := path.Clean("/" + parts[2]); ; dir = path.Dir(dir) {
			limit, _ := fs.ReadFile(root, path.Join(top, dir, file))
			least = min(least, number(limit, 1))
			if dir == "/" {
				break
			}
		}
	}
	return least
}

func machineMemory(root fs.FS) int64 {
	text, _ := fs.ReadFile(root, "proc/meminfo")
	_, rest, _ := bytes.Cut(text, []byte("MemTotal:"))
	return number(rest, 1<<10)
}

// number reads the number at the beginning of a text, in units of so many bytes. An empty text, or
// max, is no limit.
func number(text []byte, unit int64) int64 {
	fields := strings.Fields(string(text))
	if len(fields) == 0 {
		return math.MaxInt64
	}
	n, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64/unit {
		return math.MaxInt64
	}
	return n * unit
}

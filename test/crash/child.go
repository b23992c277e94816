package crash

import (
	"encoding/json"
	"fmt"
	"os"
)

// partWriter is the first argument of this program when it is to be the writer. The second is the
// script, in JSON.
const partWriter = "crash-writer"

// playWriter is the writer, if the process was started for that, and returns its exit code.
// TestMain calls it first. args is os.Args.
func playWriter(args []string) (code int, played bool) {
	if len(args) != 3 || args[1] != partWriter {
		return 0, false
	}
	var s script
	err := json.Unmarshal([]byte(args[2]), &s)
	if err == nil {
		err = write(s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

// environment is that of the writer. Under the race detector a process waits for a second before it
// ends, unless it is told not to.
func environment() []string {
	return append(os.Environ(), "GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0")
}

// Lifespan is a command that records when it lived: each of its processes writes the first and the
// last moment that it ran to a file DIR/TOKEN.PARENT.PID. Tests run it under `regent run`, and hold
// what it wrote to the lease.
//
//	lifespan DIR            runs, and ends at SIGTERM
//	lifespan DIR stubborn   ignores SIGTERM
//	lifespan DIR family     is stubborn, and starts one more in its process group, and one outside
package main

import (
	"log"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"regent/leadership"
	"regent/leadership/boottime"
	"regent/test/process"
)

const interval = 4 * time.Millisecond

func main() {
	dir := os.Args[1]
	if len(os.Args) > 2 {
		signal.Ignore(syscall.SIGTERM)
		if os.Args[2] == "family" {
			start(dir, false)
			start(dir, true)
		}
	}
	token, err := strconv.ParseInt(os.Getenv("REGENT_FENCING_TOKEN"), 10, 64)
	if err != nil {
		log.Fatal(err)
	}
	l := process.Lifespan{Token: leadership.Token(token), Parent: os.Getppid(), PID: os.Getpid(), First: boottime.Now()}
	f, err := l.Create(dir)
	if err != nil {
		log.Fatal(err)
	}
	for ; ; time.Sleep(interval) {
		l.Last = boottime.Now()
		if err := l.Write(f); err != nil {
			log.Fatal(err)
		}
	}
}

// start starts another one.
func start(dir string, leaves bool) {
	cmd := exec.Command("/proc/self/exe", dir, "stubborn")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: leaves}
	if err := cmd.Start(); err != nil {
		log.Fatal(err)
	}
}

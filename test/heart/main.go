// Heart is a command that says when it lived. Each of its processes writes the moments of its first and of its last beat, in nanoseconds of
// CLOCK_BOOTTIME, to a file DIR/TOKEN.PARENT.PID.
//
//	heart DIR            beats, and ends at SIGTERM
//	heart DIR stubborn   ignores SIGTERM
//	heart DIR family     is stubborn, and starts two more that are: one in its group, and one that leaves it
package main

import (
	"encoding/binary"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"regent/leadership/boottime"
)

const beat = 4 * time.Millisecond

func main() {
	dir := os.Args[1]
	if len(os.Args) > 2 {
		signal.Ignore(syscall.SIGTERM)
		if os.Args[2] == "family" {
			begin(dir, false)
			begin(dir, true)
		}
	}
	name := fmt.Sprintf("%s.%d.%d", os.Getenv("REGENT_FENCING_TOKEN"), os.Getppid(), os.Getpid())
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		log.Fatal(err)
	}
	moments := make([]byte, 16)
	binary.NativeEndian.PutUint64(moments, uint64(boottime.Now()))
	for {
		binary.NativeEndian.PutUint64(moments[8:], uint64(boottime.Now()))
		if _, err := f.WriteAt(moments, 0); err != nil {
			log.Fatal(err)
		}
		time.Sleep(beat)
	}
}

// begin starts another one.
func begin(dir string, leaves bool) {
	cmd := exec.Command("/proc/self/exe", dir, "stubborn")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: leaves}
	if err := cmd.Start(); err != nil {
		log.Fatal(err)
	}
}

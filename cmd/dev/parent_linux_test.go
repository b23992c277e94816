package main

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"regent/emulators/need"
)

func TestATerminalThatIsClosedEndsIt(t *testing.T) {
	t.Parallel()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		need.Lacks(t, fmt.Sprintf("no terminal to close: %v", err))
	}
	defer master.Close()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, input := range []*os.File{terminal, null} {
		if abandoned(os.Getppid(), input) {
			t.Errorf("%s is there, and counts as closed", input.Name())
		}
	}
	if err := master.Close(); err != nil {
		t.Fatal(err)
	}
	if !abandoned(os.Getppid(), terminal) {
		t.Error("a terminal that is closed counts as open")
	}
}

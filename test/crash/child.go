package crash

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// The parts that this program runs in processes of its own. The first argument names the part, the
// second says what to do, in JSON.
const (
	partWriter  = "crash-writer"
	partImages  = "crash-images"
	partEndings = "crash-endings"
)

// childVariable is set in the environment of a part, so that a program that forgets to call Main
// does not start itself for ever.
const childVariable = "REGENT_CRASH_PART"

// Main runs a part, if Run started the process for that, and returns its exit code. A program that
// calls Run must call Main first, a test in TestMain. args is os.Args.
func Main(args []string) (code int, played bool) {
	if len(args) != 3 {
		return 0, false
	}
	var err error
	switch args[1] {
	case partWriter:
		err = runPart(args[2], write)
	case partImages:
		err = runPart(args[2], checkImages)
	case partEndings:
		err = runPart(args[2], checkEndings)
	default:
		return 0, false
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

func runPart[T any](text string, part func(T) error) error {
	var what T
	if err := json.Unmarshal([]byte(text), &what); err != nil {
		return err
	}
	return part(what)
}

// self returns the program and its arguments for a part.
func self(part string, what any) (program string, args []string, err error) {
	text, err := json.Marshal(what)
	if err != nil {
		return "", nil, err
	}
	program, err = os.Executable()
	return program, []string{part, string(text)}, err
}

// environment is the environment of a part. Under the race detector a process waits for a second
// before it ends, unless it is told not to.
func environment() []string {
	return append(os.Environ(), childVariable+"=1", "GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0")
}

// patience is how long a part may be silent before it counts as hanging: then the image that it was
// opening is kept.
const patience = 2 * time.Minute

// listen runs a part and passes each of its lines to hear. If it did not end well, or was silent
// for too long, the error has its standard error.
func listen(ctx context.Context, part string, what any, hear func(line []byte) error) error {
	program, args, err := self(part, what)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(patience, func() { cancel(errHangs) })
	defer silent.Stop()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = environment()
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	heard := each(out, func(line []byte) error { silent.Reset(patience); return hear(line) })
	if heard != nil {
		cancel(heard)
	}
	if err := cmd.Wait(); err != nil || heard != nil {
		return errors.Join(heard, context.Cause(ctx), err, stderrOf(stderr.Bytes()))
	}
	return nil
}

var errHangs = fmt.Errorf("the process has been silent for %v", patience)

func each(from io.Reader, hear func([]byte) error) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if err := hear(lines.Bytes()); err != nil {
			return err
		}
	}
	return lines.Err()
}

// stderrOf is the beginning of a part's standard error.
func stderrOf(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	return errors.New(string(text[:min(len(text), 2000)]))
}

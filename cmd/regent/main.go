package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"regent/cmd/regent/internal/leash"
)

// system is the process's streams and environment, as os.Environ returns it.
type system struct {
	in       io.Reader
	out, err io.Writer
	environ  []string
}

func main() {
	// regent run starts this program again as its helper processes.
	logOut := newAsyncWriter(os.Stderr)
	if code, played := leash.Main(os.Args, newLogTo(logOut, isTerminal(os.Stderr), "")); played {
		logOut.drain()
		os.Exit(code)
	}
	// Writing to a closed pipe must be an error like any other and not end the process: the service
	// outlives the reader of its log, and acquire must report that its answer was lost.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(run(context.Background(), os.Args[1:], system{os.Stdin, os.Stdout, os.Stderr, os.Environ()}))
}

// run executes one invocation of regent and returns the exit code.
func run(ctx context.Context, args []string, sys system) int {
	c := newCLI(sys)
	root := c.root()
	root.SetArgs(append([]string{}, args...)) // must not be nil: cobra would use os.Args
	cmd, err := root.ExecuteContextC(ctx)
	return c.report(cmd, args, err)
}

package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"regent/cmd/regent/internal/leash"
)

// system is what a process has: its streams and its environment, as os.Environ gives it.
type system struct {
	in       io.Reader
	out, err io.Writer
	environ  []string
}

func main() {
	// What run starts beside its command is this program, too.
	said := newSpill(os.Stderr)
	if code, played := leash.Main(os.Args, newLogTo(said, isTerminal(os.Stderr), "")); played {
		said.drain()
		os.Exit(code)
	}
	// To write where nobody reads any more is an error like any other, and does not end the process: a service outlives whoever reads its
	// log, and an acquire has something to say when its answer is lost.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(run(context.Background(), os.Args[1:], system{os.Stdin, os.Stdout, os.Stderr, os.Environ()}))
}

// run is one invocation of regent. It returns the exit code.
func run(ctx context.Context, args []string, sys system) int {
	c := newCLI(sys)
	root := c.root()
	root.SetArgs(append([]string{}, args...)) // never nil, for which cobra would take the process's own
	cmd, err := root.ExecuteContextC(ctx)
	return c.report(cmd, err)
}

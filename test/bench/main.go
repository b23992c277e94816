package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"syscall"
)

// memberVariable holds the folder of the process that is to be etcd.
const memberVariable = "BENCH_MEMBER"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// play is what this process does if it was started by another one of its kind. is says whether that was so.
func play(ctx context.Context) (is bool, err error) {
	if dir, is := os.LookupEnv(memberVariable); is {
		return true, member(ctx, dir)
	}
	if post, is := os.LookupEnv(postVariable); is {
		return true, lead(ctx, post)
	}
	return false, nil
}

// options are what a caller chooses.
type options struct {
	quick, render bool
	only          string
	dir, out      string
	program       string
}

func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.BoolVar(&o.quick, "quick", false, "fewer and shorter rounds")
	flags.BoolVar(&o.render, "render", false, "measure nothing: write the report anew from results.json")
	flags.StringVar(&o.only, "only", "", "hold but the contests whose id this `expression` finds, and write no report")
	flags.StringVar(&o.dir, "dir", "", "`folder` on the disk to measure on (default: the system's for what is temporary)")
	flags.StringVar(&o.out, "out", ".", "`folder` of the report")
	flags.StringVar(&o.program, "regent", "", "a `program` that was built before, to measure instead of what is here")
	return o, flags.Parse(args)
}

func run(ctx context.Context, args []string) error {
	if is, err := play(ctx); is {
		return err
	}
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.render {
		found, err := load(o.out)
		if err != nil {
			return err
		}
		return found.write(o.out)
	}
	if disk, err := fileSystem(cmp.Or(o.dir, os.TempDir())); err != nil || disk == inMemory {
		return cmp.Or(err, errors.New("the data would be in memory, where nothing is durable; choose a folder on a disk with -dir"))
	}
	pick, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	plan := full
	if o.quick {
		plan = quick
	}
	// This process is not what is measured: it shall collect its garbage seldom.
	debug.SetGCPercent(400)
	found, err := measure(ctx, plan, o, pick)
	if err != nil {
		return err
	}
	if o.only != "" {
		return found.print(os.Stdout)
	}
	return found.write(o.out)
}

// build makes the program that is shipped, in the folder, from the module that this one stands in.
func build(ctx context.Context, dir string) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "regent").Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w", err)
	}
	binary := filepath.Join(dir, "regent")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", binary, "./cmd/regent")
	cmd.Dir, cmd.Stderr = string(root[:len(root)-1]), os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	return binary, cmd.Run()
}

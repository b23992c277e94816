package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		os.Exit(1)
	}
}

// child runs etcd, if this program has started itself for that. It reports whether it did.
func child() (is bool, err error) {
	dir, is := os.LookupEnv(memberVariable)
	if is {
		err = member(dir)
	}
	return is, err
}

func run(ctx context.Context, args []string) error {
	if is, err := child(); is {
		return err
	}
	flags := flag.NewFlagSet("etcd", flag.ContinueOnError)
	look := flags.Bool("quick", false, "fewer and shorter rounds, for a look: the report is printed and no file is written")
	render := flags.Bool("render", false, "measure nothing: write the report again from results.json")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *render {
		found, err := readResult(".")
		if err != nil {
			return err
		}
		return found.write(".")
	}
	plan := full
	if *look {
		plan = quick
	}
	debug.SetGCPercent(400) // this process is not measured: it should seldom collect garbage
	found, err := measure(ctx, plan)
	if err != nil {
		return err
	}
	if !*look {
		return found.write(".")
	}
	report, err := found.report()
	fmt.Print(report)
	return err
}

// build builds a command of the module in that folder, puts it into dir, and returns its path.
func build(ctx context.Context, module, command, dir string) (string, error) {
	binary := filepath.Join(dir, filepath.Base(command)+"-program")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags=disable_grpc_modules,grpcnotrace", "-o", binary, command)
	cmd.Dir, cmd.Stderr = module, os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	return binary, cmd.Run()
}

package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"syscall"

	"regent/test/load"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		os.Exit(1)
	}
}

// child runs what this program was started for by itself: etcd, a leader that is to be killed, a
// contender, or a crowd. It reports whether it was.
func child(ctx context.Context) (is bool, err error) {
	if dir, is := os.LookupEnv(memberVariable); is {
		return true, member(ctx, dir)
	}
	if spec, is := os.LookupEnv(leaderVariable); is {
		return true, lead(ctx, spec)
	}
	if text, is := os.LookupEnv(campaignVariable); is {
		return true, runCampaign(ctx, text)
	}
	return load.Main(), nil
}

// options are the flags.
type options struct {
	quick, render, spindle bool
	only                   string
	dir, out               string
	program                string
}

func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("etcd", flag.ContinueOnError)
	flags.BoolVar(&o.quick, "quick", false, "fewer and shorter rounds, for a look: the report is printed and no file is written")
	flags.BoolVar(&o.render, "render", false, "measure nothing: write the report again from results.json")
	flags.BoolVar(&o.spindle, "spindle", false, "measure only beside spindle, and replace that part of the report")
	flags.StringVar(&o.only, "only", "", "run only the contests whose id matches this `expression`, and write no report")
	flags.StringVar(&o.dir, "dir", "", "`folder` on the disk to measure (default: the system's folder for temporary files)")
	flags.StringVar(&o.out, "out", "", "`folder` of the report (default: this one; of a quick run none, it is printed)")
	flags.StringVar(&o.program, "regent", "", "measure this `program` instead of building one")
	return o, flags.Parse(args)
}

// folder is where the report is.
func (o options) folder() string { return cmp.Or(o.out, ".") }

func run(ctx context.Context, args []string) error {
	if is, err := child(ctx); is {
		return err
	}
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.render {
		found, err := readResult(o.folder())
		if err != nil {
			return err
		}
		return found.write(o.folder())
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
	debug.SetGCPercent(400) // this process is not measured: it should seldom collect garbage
	var found Result
	if o.spindle {
		found, err = again(ctx, plan, o)
	} else {
		found, err = measure(ctx, plan, o, pick)
	}
	if err != nil {
		return err
	}
	return o.put(found, os.Stdout)
}

// put writes the report, or prints it if the run was only for a look.
func (o options) put(found Result, out io.Writer) error {
	switch {
	case o.only != "":
		return found.print(out)
	case o.quick && o.out == "":
		report, err := found.report("")
		if err == nil {
			_, err = io.WriteString(out, report)
		}
		return err
	}
	return found.write(o.folder())
}

// rootFolder is the folder of the module that is measured.
func rootFolder(ctx context.Context) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "regent").Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w", err)
	}
	return strings.TrimSpace(string(root)), nil
}

// build builds a command of the module in that folder, puts it into dir, and returns its path.
func build(ctx context.Context, module, command, dir string) (string, error) {
	binary := filepath.Join(dir, filepath.Base(command)+"-program")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", binary, command)
	cmd.Dir, cmd.Stderr = module, os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	return binary, cmd.Run()
}

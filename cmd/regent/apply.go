package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"regent/cmd/regent/internal/apply"
	"regent/httpapi"
	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/wire"
)

type applySettings struct {
	files  []string
	dryRun bool
	schema bool
	apply.Options
}

func (c *cli) applyCommand() *cobra.Command {
	var s applySettings
	cmd := &cobra.Command{
		Use:   "apply -f FILE [-f FILE…] [--dry-run] [--restore] [--prune PREFIX] [--prune-held]",
		Short: "Bring elections to the configuration that files declare",
		Long: `Create the elections that files declare, and change those that differ. The files are YAML or JSON; a folder stands for its
*.yaml, *.yml and *.json files, and - for standard input. A file has the members of PUT /v1/elections/{election}, by name:

  defaults:             # optional: what the elections of this document have in common
    lockDelay: 5s
  elections:
    reports:
      leaseDuration: 1m
      policy: {strategy: priority, window: 10s}
    orders.eu: {}       # nothing but the defaults

A member that is left out has its default, whatever the election has now. A mistake in any file is an error, with its
line, before anything is written. Elections that no file declares are left alone, unless their names begin with a --prune
PREFIX. A deleted election is brought back only with --restore.

Each write is conditional: if an election was configured, created or deleted since it was read here, the exit code is 8
and the change of the other caller stands. Changes are made one after another, and end with the first that fails; the
output says which were made. Applying again is safe, and changes nothing if all elections are as declared.

Exit codes beside those of other commands: 7, --dry-run found differences; 8, another caller was faster. With --prune, 3
says that a candidate leads an election that would be deleted.

Roles: operator, and admin for --prune. Both may read.`,
		Example: `  regent apply -f elections.yaml --dry-run
  regent apply -f elections/ --prune orders.
  regent apply --schema > elections.schema.json    # in a file: # yaml-language-server: $schema=elections.schema.json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.validate(); err != nil {
				return err
			}
			if s.schema {
				return c.printSchema()
			}
			return c.apply(cmd.Context(), s)
		},
	}
	cmd.Flags().StringArrayVarP(&s.files, "file", "f", nil, "`FILE` or folder that declares elections; - for standard input; may be repeated")
	cmd.Flags().BoolVar(&s.dryRun, "dry-run", false, "write nothing; print what would change, with exit code 7 if that is anything")
	cmd.Flags().BoolVar(&s.Restore, "restore", false, "bring elections back that were deleted")
	cmd.Flags().Var(&value[[]string]{&s.Prune, "", "PREFIX", s.parsePrune}, "prune", "delete elections that are in no file and whose names begin with PREFIX; may be repeated")
	cmd.Flags().BoolVar(&s.PruneHeld, "prune-held", false, "with --prune: also those that a candidate leads, as delete --force does")
	cmd.Flags().BoolVar(&s.schema, "schema", false, "print the JSON Schema of the files, for editors")
	_ = cmd.MarkFlagFilename("file", "yaml", "yml", "json") // an error only for an unknown flag
	return c.remote(cmd)
}

func (s *applySettings) validate() error {
	switch {
	case s.schema && len(s.files) > 0:
		return usagef("--schema takes no files; leave out -f")
	case !s.schema && len(s.files) == 0:
		return usagef("give -f FILE, -f - for standard input, or --schema")
	case slices.Contains(s.files, ""):
		return usagef("-f: must not be empty; name a file or a folder, or - for standard input")
	case s.PruneHeld && len(s.Prune) == 0:
		return usagef("--prune-held is for --prune; name the prefix of the elections to delete")
	}
	return nil
}

// parsePrune adds a prefix to those given before.
func (s *applySettings) parsePrune(text string) ([]string, error) {
	if text == "" {
		return nil, errors.New("must not be empty: it would delete all elections that are in no file; name how theirs begin")
	}
	if err := leadership.ValidatePrefix(text); err != nil {
		return nil, err
	}
	return append(s.Prune, text), nil
}

func (c *cli) printSchema() error {
	schema, err := apply.Schema(httpapi.Spec())
	if err != nil {
		return err
	}
	return c.printLines(string(schema))
}

func (c *cli) apply(ctx context.Context, s applySettings) error {
	files, err := c.readFiles(s.files)
	if err != nil {
		return err
	}
	declared, err := apply.Read(files...)
	if err != nil {
		return c.reportMistakes(err)
	}
	patient, err := c.connectPatiently()
	if err != nil {
		return err
	}
	steps, err := apply.Look(ctx, patient, declared, s.Options)
	if err != nil {
		return err
	}
	r := applyReport{newTally(c)}
	refused := slices.IndexFunc(steps, func(s apply.Step) bool { return s.Refused != nil })
	if !s.dryRun && refused < 0 {
		err = r.carryOut(ctx, patient, steps)
		if errors.As(err, new(apply.Conflict)) {
			err = exitStatus{exitConflict, err}
		}
		return cmp.Or(err, r.err)
	}
	r.plan(steps)
	switch {
	case refused >= 0:
		err = steps[refused].Refused
	case (r.err == nil || stdoutClosed(r.err)) && slices.ContainsFunc(steps, func(s apply.Step) bool { return s.Action != apply.None }):
		err = exitStatus{code: exitDiffers}
	}
	return cmp.Or(err, r.err)
}

// reportMistakes prints each mistake on a line, as compilers do, and returns a sentence about all.
func (c *cli) reportMistakes(err error) error {
	mistakes, ok := errors.AsType[apply.Mistakes](err)
	if !ok || len(mistakes) == 1 || c.output == document {
		return usageError{err}
	}
	fmt.Fprintln(c.err, strings.Join(mistakes, "\n"))
	return usagef("the files have %d mistakes; nothing was applied", len(mistakes))
}

// patientServer calls a server, each call within the timeout. If the server refuses a call because
// there were too many, it waits and calls again.
type patientServer struct {
	*client.Client
	timeout time.Duration
}

// connectPatiently is connect for a command that makes many calls.
func (c *cli) connectPatiently() (patientServer, error) {
	server, err := c.connect()
	return patientServer{server, c.timeout}, err
}

func (p patientServer) Get(ctx context.Context, e leadership.Election) (leadership.Lease, error) {
	return patiently(ctx, p.timeout, p.Client.Get, e)
}

func (p patientServer) List(ctx context.Context, r leadership.ListRequest) (leadership.Page, error) {
	return patiently(ctx, p.timeout, p.Client.List, r)
}

func (p patientServer) Do(ctx context.Context, c leadership.Command) (leadership.Lease, error) {
	return patiently(ctx, p.timeout, p.Client.Do, c)
}

func patiently[Q, A any](ctx context.Context, timeout time.Duration, call func(context.Context, Q) (A, error), q Q) (A, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		answer, err := call(ctx, q)
		refusal, ok := errors.AsType[*leadership.Error](err)
		end, _ := ctx.Deadline()
		if !ok || refusal.Code != wire.RateLimited || time.Until(end) <= refusal.RetryAfter {
			return answer, err
		}
		sleep(ctx, max(refusal.RetryAfter, minPause))
	}
}

// maxDeclared limits the size of a file.
const maxDeclared = 16 << 20

// readFiles reads the files, and those in the folders, each once.
func (c *cli) readFiles(names []string) (files []apply.File, err error) {
	for _, name := range names {
		paths, err := declaring(name)
		if err != nil {
			return nil, usagef("-f: %w", err)
		}
		for _, path := range paths {
			text, err := c.readFile(path, maxDeclared)
			if err == nil && len(text) > maxDeclared {
				err = fmt.Errorf("%s is longer than %d MiB; declare the elections in several files", nameOfFile(path), maxDeclared>>20)
			}
			if err != nil {
				return nil, usagef("-f: %w", err)
			}
			files = append(files, apply.File{Name: nameOfFile(path), Text: text})
		}
	}
	return files, nil
}

// declaring returns the file, or the files in the folder that have a name of YAML or JSON. Hidden
// files are not among them: editors keep locks and copies there.
func declaring(name string) ([]string, error) {
	if name == "-" {
		return []string{name}, nil
	}
	info, err := os.Stat(name)
	if err != nil || !info.IsDir() {
		return []string{name}, err
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, e := range entries {
		if !e.IsDir() && !strings.HasPrefix(e.Name(), ".") && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			found = append(found, filepath.Join(name, e.Name()))
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("the folder %s has no *.yaml, *.yml or *.json file", name)
	}
	return found, nil
}

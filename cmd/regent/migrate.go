package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"regent/leadership"
	"regent/store"
)

func (c *cli) migrateCommand() *cobra.Command {
	var m migration
	cmd := &cobra.Command{
		Use:   "migrate --store STORE [--from STORE [--dry-run]]",
		Short: "Prepare a store, or move another store into it",
		Long: `Create what a store needs before serve can use it. Spanner needs tables (on its emulator also an instance and a
database); the other stores need nothing. Running it again changes nothing.

With --from, all elections of another store are moved into this one: their fencing tokens and revisions continue, their
configurations stay, and none has a leader. No election is granted before the lease that the old store knew would have
ended. In the old store each is deleted, and a mark is left: from then on no server starts on it. The new store can be
served once the command has ended with exit code 0.

Stop every server of both stores first, and start none before that. The mark does not stop a server that already uses the
old store: that server goes on, and would grant elections that are new there, or that an operator restores there. If the
command is interrupted, run it again: it continues where it was. To go back, move in the other direction.`,
		Example: `  regent admin migrate --store spanner:projects/P/instances/I/databases/D
  regent admin migrate --from firestore:P --store spanner:projects/P/instances/I/databases/D --dry-run`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.migrate(cmd.Context(), m) },
	}
	cmd.Flags().Var(&value[string]{&m.store, "", "STORE", parseText}, "store", "the store, as for serve")
	cmd.Flags().Var(&value[string]{&m.from, "", "STORE", parseText}, "from", "the store to move out of")
	cmd.Flags().BoolVar(&m.dryRun, "dry-run", false, "with --from: print what would be moved, and change nothing")
	c.require(cmd, "store", "REGENT_STORE")
	return cmd
}

type migration struct {
	store, from string
	dryRun      bool
}

func (c *cli) migrate(ctx context.Context, m migration) error {
	if m.from != "" {
		if err := store.CheckMove(m.from, m.store); err != nil {
			return err
		}
	} else if m.dryRun {
		return usagef("--dry-run needs --from")
	}
	c.tellEmulator(m.store)
	if kindOf(m.from) != kindOf(m.store) {
		c.tellEmulator(m.from)
	}
	if m.dryRun {
		return c.planMove(ctx, m)
	}
	done, err := store.Migrate(ctx, m.store)
	if err != nil {
		return storeError{m.store, err}
	}
	if m.from == "" {
		return c.printLines(done)
	}
	return c.move(ctx, m)
}

func (c *cli) move(ctx context.Context, m migration) error {
	return c.between(ctx, m, func(from, to store.Store) error {
		moved, err := store.Move(ctx, from, to, m.store)
		switch {
		case errors.Is(err, leadership.RecordCorrupt), errors.Is(err, leadership.LeaseHeld):
			return err
		case err != nil:
			return fmt.Errorf("%w; run the same command again, and start no server before it ends with exit code 0", err)
		}
		return c.printLines(summary(m, moved))
	})
}

func (c *cli) planMove(ctx context.Context, m migration) error {
	return c.between(ctx, m, func(from, to store.Store) error {
		plan, err := store.PlanMove(ctx, from, to)
		for _, p := range plan {
			if err := c.printLines(plannedLine(p)); err != nil {
				return err
			}
		}
		return err
	})
}

func (c *cli) between(ctx context.Context, m migration, do func(from, to store.Store) error) error {
	from, err := store.OpenExisting(ctx, m.from, store.Config{})
	if err != nil {
		return storeError{m.from, err}
	}
	defer from.Close()
	to, err := openTarget(ctx, m)
	if err != nil {
		return storeError{m.store, err}
	}
	return errors.Join(do(from, to), to.Close())
}

// openTarget opens the store to move into. A dry run creates no file: a missing file counts as an
// empty store.
func openTarget(ctx context.Context, m migration) (store.Store, error) {
	if !m.dryRun {
		return store.Open(ctx, m.store, store.Config{})
	}
	to, err := store.OpenExisting(ctx, m.store, store.Config{})
	if errors.Is(err, fs.ErrNotExist) {
		return store.Open(ctx, "memory:", store.Config{})
	}
	return to, err
}

// summary says what was moved, and when all elections can be led again.
func summary(m migration, moved []store.Passage) string {
	var present, deleted int
	var locked time.Duration
	for _, p := range moved {
		if p.Present {
			present++
		}
		if p.Deleted {
			deleted++
		}
		locked = max(locked, p.LockedFor)
	}
	text := fmt.Sprintf("%d elections of %s are now in %s, %d of them deleted; %d were there before", len(moved), m.from, m.store, deleted, present)
	if locked > 0 {
		text += fmt.Sprintf("; all can be led in %v, when the last lease of the old store has ended", ceilSeconds(locked))
	}
	return text
}

func plannedLine(p store.Passage) string {
	state := "vacant"
	switch {
	case p.Deleted:
		state = "deleted"
	case p.LockedFor > 0:
		state = fmt.Sprintf("locked for %v", ceilSeconds(p.LockedFor))
	}
	verb := "move"
	if p.Present {
		verb = "already there"
	}
	return fmt.Sprintf("%s: %s, fencing token %d, revision %d, %s", cmp.Or(string(p.Election), `""`), verb, p.Token, p.Revision, state)
}

func ceilSeconds(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }

func (c *cli) tellEmulator(spec string) {
	variable := strings.ToUpper(kindOf(spec)) + emulatorSuffix
	if host := c.env[variable]; host != "" {
		fmt.Fprintf(c.err, "%s is set: this uses the emulator at %s\n", variable, host)
	}
}

func kindOf(spec string) string {
	kind, _, _ := strings.Cut(spec, ":")
	return kind
}

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/store"
)

func (c *cli) raiseCommand() *cobra.Command {
	var spec string
	var r store.Raising
	cmd := &cobra.Command{
		Use:   "raise --store STORE --above N [--lock DURATION] [--prefix PREFIX]",
		Short: "Raise all fencing tokens of a store that was restored from a backup",
		Long: `Raise the fencing tokens and revisions of all elections of a store that was restored from a backup to N, so that the next
grants are above everything that was granted after the backup. N must be at least the highest revision that was ever seen of
any election: look at the newest messages of the topic, at the logs, and at the marks of guarded resources. (A fencing token
is never above its revision.) Tokens end at 2^53, so be generous: a million more costs nothing.

Elections that were created after the backup are not in the store. From now on, one that the store has never seen starts
above N too, and not with token 1: the store keeps N as its floor, which servers read when they start.

Afterwards no election has a leader, and none can have one before all leases that the backup does not contain have ended:
for one lease as configured plus the lock delay, or for DURATION if that is longer. Give --lock if candidates ask for longer
leases than configured, or if elections created after the backup had longer ones than the default of 30s.

Stop every server of the store first. If it is interrupted, run it again with the same N: it continues where it was, and
raises nothing twice. If N is too low for any election, it fails and changes nothing. Corrupt records are named and left as
they are (exit code 1): those elections cannot have a leader, and no leader can write in those journals and other logs.`,
		Example: `  regent admin raise --store firestore:P/regent-2 --above 1000000
  regent admin raise --store file:/var/lib/regent/leases --above 1000000 --lock 5m`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.raise(cmd.Context(), spec, r) },
	}
	cmd.Flags().Var(&value[string]{&spec, "", "STORE", parseText}, "store", "the store, as for serve")
	cmd.Flags().Var(&value[leadership.Revision]{&r.Above, "", "N", integers(rule.MinRaise, rule.MaxRaise, fmt.Sprintf("must be an integer from %d to %d", rule.MinRaise, rule.MaxRaise))}, "above", "at least the highest revision, and so the highest token, that was ever seen")
	cmd.Flags().Var(&value[time.Duration]{&r.Lock, "", "DURATION", between(0, leadership.MaxLeaseDuration+leadership.MaxLockDelay)}, "lock", "how long all elections stay vacant at least, up to 48h")
	cmd.Flags().Var(&value[string]{&r.Prefix, "", "PREFIX", parsePrefix}, "prefix", "only elections whose names begin with PREFIX, and those that the store has never seen")
	c.require(cmd, "store", "REGENT_STORE")
	c.require(cmd, "above", "")
	return cmd
}

// untrustedError names the records that were left unchanged because they are corrupt.
type untrustedError struct{ store.Raised }

func (u untrustedError) Error() string {
	text := "corrupt records were left as they are; repair each, with a fencing token above every one ever seen"
	if len(u.Untrusted) > 0 {
		text += "; until then these elections cannot have a leader: " + store.Quoted(u.Untrusted)
	}
	if len(u.Logs) > 0 {
		text += "; until then no leader can write in " + store.Quoted(u.Logs)
	}
	return text
}

func (c *cli) raise(ctx context.Context, spec string, r store.Raising) error {
	c.tellEmulator(spec)
	leases, err := store.OpenExisting(ctx, spec, store.Config{})
	if err != nil {
		return storeError{spec, err}
	}
	done, err := store.Raise(ctx, leases, r)
	if err = errors.Join(err, leases.Close()); err != nil {
		return err
	}
	text := fmt.Sprintf("%d elections of %s are now at fencing token %d; %d already were", done.Raised+done.Present, spec, r.Above, done.Present)
	if done.LockedFor > 0 {
		text += fmt.Sprintf("; all can be led in %v", ceilSeconds(done.LockedFor))
	}
	if err := c.printLines(text); err != nil || len(done.Untrusted)+len(done.Logs) == 0 {
		return err
	}
	return untrustedError{done}
}

func parsePrefix(text string) (string, error) { return text, leadership.ValidatePrefix(text) }

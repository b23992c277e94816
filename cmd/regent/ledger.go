package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"regent/leadership"
	"regent/leadership/client"
)

type dataFlags struct {
	file string
	uri  string
}

func (f *dataFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.file, "file", "-", "`FILE` with the data, as JSON; - is standard input")
	cmd.Flags().StringVar(&f.uri, "uri", "", "where the data is, instead of the data itself")
	cmd.MarkFlagsMutuallyExclusive("file", "uri")
}

// keyBeside is requireKey for a command that also reads data from a file or standard input.
func (c *cli) keyBeside(file string, key keyFlags) (leadership.Key, error) {
	if file == "-" && key.file == "-" {
		return leadership.Key{}, usagef("the data and the key cannot both come from standard input; give --file FILE, or the key by REGENT_KEY or --key-file FILE")
	}
	return c.requireKey(key)
}

// readData reads UTF-8 text of at most the given number of bytes from a file or standard input.
func (c *cli) readData(path string, most int) ([]byte, error) {
	b, err := c.readFile(path, int64(most))
	switch {
	case err != nil:
		return nil, fmt.Errorf("--file: %w", err)
	case len(b) > most:
		return nil, usagef("%s has more than %d bytes; put the data elsewhere, and give --uri", nameOfFile(path), most)
	case !utf8.Valid(b):
		return nil, usagef("%s is not in UTF-8; write other bytes as text, such as base64", nameOfFile(path))
	}
	return b, nil
}

// json reads one JSON value; nil if there is a URI in its place. The file may be longer than most,
// because white space will not count.
func (f dataFlags) json(c *cli, most int) (json.RawMessage, error) {
	if f.uri != "" {
		return nil, nil
	}
	b, err := c.readData(f.file, 4*most)
	if err != nil {
		return nil, err
	}
	if b = bytes.TrimSpace(b); !json.Valid(b) {
		return nil, usagef("the data is not JSON; text is, between quotation marks, as jq -R . makes it")
	}
	return b, nil
}

// family returns a command that only groups others.
func (c *cli) family(name, short, long string, commands ...*cobra.Command) *cobra.Command {
	parent := &cobra.Command{Use: name, Short: short, Long: long}
	var names []string
	for _, one := range commands {
		names = append(names, one.Name())
	}
	parent.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usagef("%s has no command %q, only %s", name, args[0], strings.Join(names, ", "))
		}
		return usagef("%s needs a command: %s", name, strings.Join(names, ", "))
	}
	c.add(parent, commands...)
	return parent
}

func (c *cli) checkpointCommand() *cobra.Command {
	return c.family("checkpoint", "Leave the state of a task to the next leader", `A checkpoint is what a leader leaves to its successors: up to 64 KiB of JSON, or a URI. Each election has one, which the
next put replaces. It outlives leases, and the deletion of its election. A leader that acquires with --inherit gets it, and
from then on no earlier leader can put another one.`,
		c.checkpointGetCommand(), c.checkpointPutCommand())
}

func (c *cli) checkpointGetCommand() *cobra.Command {
	var bare bool
	cmd := &cobra.Command{
		Use:   "get ELECTION [--data]",
		Short: "Show the checkpoint of an election",
		Long: `Show the checkpoint of an election, and the leader that put it. Callers that may lead or operate the election may do this.
A leader that goes on from it must acquire with --inherit, so that no late checkpoint can replace it.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return answer(cmd.Context(), c, leadership.Election(args[0]), (*client.Client).Checkpoint, func(p leadership.Checkpoint) error {
				switch {
				case !bare:
					return c.printCheckpoint(p)
				case p.URI != "":
					return fmt.Errorf("the checkpoint has no data, but is at %s", p.URI)
				}
				return c.printLines(string(p.Data))
			})
		},
	}
	cmd.Flags().BoolVar(&bare, "data", false, "print the data alone, as JSON")
	return c.remote(cmd)
}

func (c *cli) checkpointPutCommand() *cobra.Command {
	var key keyFlags
	var data dataFlags
	var r leadership.CheckpointRequest
	cmd := &cobra.Command{
		Use:   "put ELECTION [--candidate ID] --token N [--file FILE | --uri URI] [--task TEXT]",
		Short: "Replace the checkpoint of an election, as its leader",
		Long: `Replace the checkpoint of an election, as its leader, by the JSON on standard input or in a file, or by a URI. If a later
leader has taken over, the exit code is 3: nothing was written, and this leader must stop. The same command again is safe.`,
		Example: `  echo '{"done":412}' | regent checkpoint put reports --candidate agent-1 --token 7 --task "shard 3"
  regent checkpoint put reports --candidate agent-1 --token 7 --uri gs://bucket/state.json --sha256 "$sum"`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			r.Election, r.URI = leadership.Election(args[0]), data.uri
			if r.Key, err = c.keyBeside(data.file, key); err != nil {
				return err
			}
			if r.Data, err = data.json(c, leadership.MaxCheckpointBytes); err != nil {
				return err
			}
			return answer(cmd.Context(), c, r, (*client.Client).PutCheckpoint, c.printCheckpoint)
		},
	}
	key.addFor(c, cmd, &r.CandidateID)
	c.addToken(cmd, &r.Token)
	data.add(cmd)
	cmd.Flags().StringVar(&r.Task, "task", "", "the task that it is about: one line of at most 256 bytes")
	cmd.Flags().StringVar(&r.SHA256, "sha256", "", "the SHA-256 of what is at the URI, in hexadecimal")
	return c.remote(cmd)
}

func (c *cli) printCheckpoint(p leadership.Checkpoint) error {
	return c.show(p, checkpointRows(p))
}

func checkpointRows(p leadership.Checkpoint) [][]string {
	f := facts{{"election", string(p.Election)}, {"leader", string(p.LeaderID)}, {"fencing token", fmt.Sprint(p.Token)}, {"put", formatTime(p.At)}}
	f.add("task", printable(p.Task))
	f.add("data", printable(string(p.Data)))
	f.add("uri", printable(p.URI))
	f.add("sha256", printable(p.SHA256))
	return f
}

func (c *cli) journalCommand() *cobra.Command {
	return c.family("journal", "Replicate what leaders do, in order", `A journal is a list of entries that the leaders of an election append, under their fencing tokens, and that followers read
in order: each entry has an index, from 1, without a gap. Entries are durable once append has reported success. Once a
later leader has opened the journal, or has appended to it, no earlier one can append any more. A snapshot stands for the
first entries, which are then deleted.`,
		c.journalAppendCommand(), c.journalReadCommand(), c.journalFollowCommand(), c.journalSnapshotCommand())
}

// parseIndex accepts 0 as well: the beginning of the journal.
var parseIndex = integers[leadership.Index](0, math.MaxInt64, "an index is an integer, 0 or more")

func (c *cli) journalAppendCommand() *cobra.Command {
	var key keyFlags
	var file, kind string
	var r leadership.AppendRequest
	cmd := &cobra.Command{
		Use:   "append ELECTION [--candidate ID] --token N [--after INDEX] [--type TYPE] [--file FILE]",
		Short: "Add entries to the journal of an election, as its leader",
		Long: `Add each JSON value on standard input, or in a file, as an entry of the journal: up to 500 with 512 KiB, all or none. It
prints the index of the last one. If a later leader has opened the journal, the exit code is 3: this leader must stop.

With --after, the entries are added only if that is the index of the last one; the same command again, after an answer that
was lost, adds them once. Without it the journal is opened first, which keeps earlier leaders from appending, and the entries
are added at its end: repeated, they are added twice.`,
		Example: `  echo '{"set":"a","to":1}' | regent journal append state --candidate agent-1 --token 7
  regent journal append state --candidate agent-1 --token 7 --after 41 --type put --file entries.jsonl`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			r.Election = leadership.Election(args[0])
			if r.Key, err = c.keyBeside(file, key); err != nil {
				return err
			}
			if r.Entries, err = c.readEntries(file, kind); err != nil {
				return err
			}
			if cmd.Flags().Changed("after") {
				return answer(cmd.Context(), c, r, (*client.Client).AppendJournal, c.printHead)
			}
			return answer(cmd.Context(), c, r, appendAtEnd, c.printHead)
		},
	}
	key.addFor(c, cmd, &r.CandidateID)
	c.addToken(cmd, &r.Token)
	cmd.Flags().Var(&value[leadership.Index]{&r.After, "", "INDEX", parseIndex}, "after", "the index of the last entry, 0 if there is none (default: whatever it is)")
	cmd.Flags().StringVar(&kind, "type", "", "the `TYPE` of the entries: at most 64 bytes of your choice")
	cmd.Flags().StringVar(&file, "file", "-", "`FILE` with the JSON values; - is standard input")
	return c.remote(cmd)
}

// appendAtEnd opens the journal, and adds the entries at its end.
func appendAtEnd(server *client.Client, ctx context.Context, r leadership.AppendRequest) (leadership.JournalHead, error) {
	head, err := server.OpenJournal(ctx, r.LeaseRequest)
	if err != nil {
		return head, err
	}
	r.After = head.Index
	return server.AppendJournal(ctx, r)
}

func (c *cli) readEntries(file, kind string) ([]leadership.Entry, error) {
	b, err := c.readData(file, 4*leadership.MaxAppendBytes)
	if err != nil {
		return nil, err
	}
	var all []leadership.Entry
	for d := json.NewDecoder(bytes.NewReader(b)); ; {
		var data json.RawMessage
		switch err := d.Decode(&data); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, usagef("entry %d is not JSON: %w; text is, between quotation marks, as jq -R . makes it", len(all)+1, err)
		}
		all = append(all, leadership.Entry{Type: kind, Data: data})
	}
}

func (c *cli) printHead(h leadership.JournalHead) error {
	f := facts{{"election", string(h.Election)}, {"index", fmt.Sprint(h.Index)}}
	if h.Snapshot > 0 {
		f.add("snapshot", fmt.Sprintf("up to %d", h.Snapshot))
	}
	return c.show(h, f)
}

func (c *cli) journalReadCommand() *cobra.Command {
	var r leadership.JournalRequest
	cmd := &cobra.Command{
		Use:   "read ELECTION [--after INDEX] [--generation N] [--limit N]",
		Short: "Show the entries of a journal",
		Long: `Show the entries of a journal. If the first ones are only kept as a snapshot, the exit code is 1, and the error says after
which index to begin; 'regent journal snapshot' shows the snapshot. With --output json each line is an entry.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Election = leadership.Election(args[0])
			return answer(cmd.Context(), c, r, readJournal, c.printEntries)
		},
	}
	cmd.Flags().Var(&value[leadership.Index]{&r.After, "0", "INDEX", parseIndex}, "after", "only entries after this one")
	cmd.Flags().Var(&value[leadership.Token]{&r.Generation, "", "N", parseToken}, "generation", "that of the journal that --after is of, if its store was ever restored")
	cmd.Flags().Var(&value[int]{&r.Limit, "", "N", parseCount}, "limit", "at most so many (default: all)")
	return c.remote(cmd)
}

// readJournal reads up to r.Limit entries; with 0, all that exist when it begins.
func readJournal(server *client.Client, ctx context.Context, r leadership.JournalRequest) (entries []leadership.Entry, err error) {
	for limit := r.Limit; ; {
		r.Limit = leadership.MaxPageSize
		if limit > 0 {
			r.Limit = min(limit-len(entries), r.Limit)
		}
		page, err := server.ReadJournal(ctx, r)
		if err != nil {
			return nil, err
		}
		entries = append(entries, page.Entries...)
		if len(page.Entries) == 0 || limit > 0 && len(entries) == limit {
			return entries, nil
		}
		r.Generation = page.Generation
		if r.After = entries[len(entries)-1].Index; r.After >= page.Index {
			return entries, nil
		}
	}
}

var entryHeader = []string{"INDEX", "AT", "TOKEN", "TYPE", "DATA"}

func entryRow(e leadership.Entry) []string {
	return []string{fmt.Sprint(e.Index), formatTime(e.At), fmt.Sprint(e.Token), cmp.Or(printable(e.Type), "-"), printable(string(e.Data))}
}

func (c *cli) printEntries(entries []leadership.Entry) error {
	rows := [][]string{entryHeader}
	for _, e := range entries {
		rows = append(rows, entryRow(e))
	}
	return showAll(c, entries, func(e leadership.Entry) leadership.Entry { return e }, rows)
}

func (c *cli) journalFollowCommand() *cobra.Command {
	f := follower{}
	cmd := &cobra.Command{
		Use:   "follow ELECTION [--after INDEX] [--member ID] [--count N]",
		Short: "Show the entries of a journal as they are appended",
		Long: `Show the entries of a journal, and then each one as it is appended, until SIGINT or SIGTERM: once, in order and without a
gap, over broken connections too; --timeout applies to the first answer. Where the first entries are only kept as a
snapshot, that comes in their place. With --member the reader counts as a member of the election that has applied the
printed entries: 'regent members' shows its lag.

With --output json each line is a document: {"entry":…} or {"snapshot":…}.`,
		Example: `  regent journal follow state --after 41
  regent journal follow state --member replica-2 --output json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.follow(cmd.Context(), leadership.Election(args[0]), f)
		},
	}
	cmd.Flags().Var(&value[leadership.Index]{&f.after, "0", "INDEX", parseIndex}, "after", "only entries after this one")
	cmd.Flags().Var(&value[leadership.CandidateID]{&f.member, "", "ID", parseCandidate}, "member", "the id of the member that follows")
	cmd.Flags().Var(&value[int]{&f.count, "", "N", parseCount}, "count", "end after N lines (default: never)")
	return c.remote(cmd)
}

type follower struct {
	after  leadership.Index
	member leadership.CandidateID
	count  int // of lines; 0 for no limit
}

// follow prints items until a signal comes, count items were printed, or a permanent error.
func (c *cli) follow(ctx context.Context, e leadership.Election, f follower) error {
	server, err := c.connect()
	if err != nil {
		return err
	}
	if err := c.ask(ctx, func(ctx context.Context, server *client.Client) error { // otherwise a wrong address would be retried for ever
		_, err := server.ReadJournal(ctx, leadership.JournalRequest{Election: e, After: f.after, Limit: 1})
		if errors.Is(err, leadership.HistoryCompacted) {
			err = nil // a snapshot comes first
		}
		return err
	}); err != nil {
		return err
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	show := c.itemPrinter()
	for item, err := range server.FollowAs(ctx, e, f.after, f.member) {
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			err = show(item)
			f.count--
		}
		if err != nil || f.count == 0 {
			return err
		}
	}
	return nil
}

func (c *cli) itemPrinter() func(client.JournalItem) error {
	table := columns{entryHeader, []int{5, 20, 5, 8, 4}}
	return func(i client.JournalItem) error {
		if s := i.Snapshot; s != nil {
			return c.showRow(i, &table, fmt.Sprint(s.UpTo), formatTime(s.At), fmt.Sprint(s.Token), "SNAPSHOT", printable(cmp.Or(s.URI, string(s.Data))))
		}
		return c.showRow(i, &table, entryRow(*i.Entry)...)
	}
}

func (c *cli) journalSnapshotCommand() *cobra.Command {
	var key keyFlags
	var data dataFlags
	var r leadership.SnapshotRequest
	cmd := &cobra.Command{
		Use:   "snapshot ELECTION [--up-to INDEX --token N [--candidate ID] [--file FILE | --uri URI]]",
		Short: "Show the snapshot of a journal or, as its leader, put another one",
		Long: `Show the newest snapshot of a journal or, with --up-to, put another one as the leader: the JSON on standard input or in a
file, of at most 512 KiB, or a URI. It stands for the entries up to that index, which are then deleted: a follower that
needs them gets the snapshot. A snapshot that does not reach as far as the present one changes nothing.`,
		Example: `  regent journal snapshot state --output json
  regent journal snapshot state --up-to 40 --candidate agent-1 --token 7 --file state.json`,
	}
	cmd.Flags().Var(&value[leadership.Index]{&r.UpTo, "", "INDEX", integers[leadership.Index](1, math.MaxInt64, "must be the index of an entry, 1 or more")}, "up-to", "the index of the last entry that the snapshot stands for")
	key.add(cmd)
	c.addCandidate(cmd, &r.CandidateID, "the candidate's id", nil)
	cmd.Flags().Var(&value[leadership.Token]{&r.Token, "", "N", parseToken}, "token", "the fencing token that came with the lease")
	c.from(cmd, "token")
	data.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		r.Election, r.URI = leadership.Election(args[0]), data.uri
		if r.UpTo == 0 {
			for _, flag := range []string{"file", "uri"} {
				if cmd.Flags().Changed(flag) {
					return usagef("--%s puts a snapshot; say for which entries it stands, with --up-to", flag)
				}
			}
			return answer(cmd.Context(), c, r.Election, (*client.Client).ReadSnapshot, c.printSnapshot)
		}
		if !cmd.Flags().Changed("token") {
			return usageError{missing(source{flag: "token", variable: "REGENT_TOKEN"})}
		}
		if r.CandidateID == "" {
			id, err := c.sameCandidate(cmd.Context())
			if err != nil {
				return usageError{err}
			}
			r.CandidateID = leadership.CandidateID(id)
		}
		if r.Key, err = c.keyBeside(data.file, key); err != nil {
			return err
		}
		if r.Data, err = data.json(c, leadership.MaxSnapshotBytes); err != nil {
			return err
		}
		return answer(cmd.Context(), c, r, (*client.Client).SnapshotJournal, c.printHead)
	}
	return c.remote(cmd)
}

func (c *cli) printSnapshot(s leadership.JournalSnapshot) error {
	f := facts{{"election", string(s.Election)}, {"up to", fmt.Sprint(s.UpTo)}, {"fencing token", fmt.Sprint(s.Token)}, {"put", formatTime(s.At)}}
	f.add("uri", printable(s.URI))
	f.add("data", printable(string(s.Data)))
	return c.show(s, f)
}

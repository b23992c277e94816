package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// group is a part of the command line. Each command stands in one.
type group struct {
	name     string // of 'regent help NAME'; "" for what 'regent help' itself shows
	about    string
	commands []*cobra.Command
}

// makeGroups makes the commands, in the order in which help shows them.
func (c *cli) makeGroups() []group {
	return []group{
		{"", "", []*cobra.Command{
			c.runCommand(), c.onceCommand(), c.acquireCommand(), c.statusCommand(), c.listCommand(), c.watchCommand(), c.historyCommand(), c.whyCommand(), c.membersCommand(),
			c.serveCommand(),
		}},
		{"lead", "Hold a lease step by step, and work with the members", []*cobra.Command{
			c.renewCommand(), c.releaseCommand(), c.checkCommand(), c.verifyCommand(), c.requestApprovalCommand(), c.delegateCommand(), c.effectsCommand(), c.joinCommand(), c.proposeCommand(),
			c.proposalsCommand(), c.decideCommand(),
		}},
		{"succession", "Pass a lease on, with what the next leader needs", []*cobra.Command{
			c.handOverCommand(),
			c.family("term", "Say how a hand-over goes, as the leader or its successor", "These commands are the steps of a hand-over for programs that 'regent run --hand-over' does not suit.",
				c.readyCommand(), c.yieldCommand(), c.servingCommand()),
			c.checkpointCommand(), c.journalCommand(),
		}},
		{"operate", "Configure elections, and overrule leaders", slices.Concat(
			[]*cobra.Command{c.configureCommand(), c.applyCommand(), c.deleteCommand(), c.treeCommand()}, c.orderCommands(false),
			[]*cobra.Command{c.haltsCommand(), c.overridesCommand(), c.judgeCommand(), c.drillCommand()},
		)},
		{"admin", "Look after the service, its stores and other clients", []*cobra.Command{
			c.doctorCommand(),
			c.family("admin", "Repair an election, or prepare a store", "These commands are seldom needed, and for operators who know the service.",
				slices.Concat(c.orderCommands(true), []*cobra.Command{c.unlockCommand(), c.migrateCommand(), c.raiseCommand(), c.credentialCommand()})...),
			c.kubeconfigCommand(), c.mcpCommand(), c.skillCommand(), c.explainCommand(), c.completionCommand(), c.helpCommand(), c.versionCommand(), c.licensesCommand(),
		}},
	}
}

// helpCommand is cobra's own, except that it knows the groups, and fails for an unknown command.
func (c *cli) helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND|GROUP]",
		Short: "Show the help of a command, or the commands of a group",
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			if len(args) == 0 {
				for _, g := range c.groups[1:] {
					names = append(names, cobra.CompletionWithDesc(g.name, g.about))
				}
				for _, g := range c.groups {
					for _, one := range g.commands {
						names = append(names, cobra.CompletionWithDesc(one.Name(), one.Short))
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				if text := c.groupHelp(args[0]); text != "" {
					_, err := fmt.Fprint(c.out, text)
					return err
				}
			}
			about, rest, err := cmd.Root().Find(args)
			switch {
			case err != nil:
				return usageError{c.unknownCommand(err)}
			case len(rest) > 0 && about.HasSubCommands():
				return about.RunE(about, rest) // which fails: there is no such command
			}
			return about.Help()
		},
	}
}

// allHelp is the name under which help shows every group.
const allHelp = "all"

// rootHelp returns the text of regent and 'regent help'.
func (c *cli) rootHelp() string {
	var text strings.Builder
	text.WriteString(aboutRegent)
	c.groups[0].list(&text)
	text.WriteString("\nMore commands:\n")
	for _, g := range c.groups[1:] {
		fmt.Fprintf(&text, "  regent help %-12s %s\n", g.name, g.about)
	}
	fmt.Fprintf(&text, "  regent help %-12s All of them, the exit codes, and the form of output\n", allHelp)
	text.WriteString("\n'regent COMMAND --help' explains a command, and 'regent explain WORD' a word.\n")
	return text.String()
}

// groupHelp lists the commands of a group, or of all; "" if there is no such group.
func (c *cli) groupHelp(name string) string {
	var text strings.Builder
	if name == allHelp {
		text.WriteString(aboutRegent)
	}
	for _, g := range c.groups {
		switch {
		case name == allHelp && g.name != "":
			fmt.Fprintf(&text, "\n%s ('regent help %s'):\n", g.about, g.name)
		case name != allHelp && name == g.name:
			fmt.Fprintf(&text, "%s:\n", g.about)
		case name != allHelp:
			continue
		}
		g.list(&text)
	}
	if name == allHelp {
		text.WriteString("\n" + exitHelp)
	}
	return text.String()
}

// list prints the commands that can be run, with their whole name.
func (g group) list(to *strings.Builder) {
	for _, one := range g.commands {
		for _, cmd := range leaves(one) {
			fmt.Fprintf(to, "  %-18s %s\n", nameOf(cmd), cmd.Short)
		}
	}
}

// leaves returns the commands below one or, if there are none, the command itself.
func leaves(one *cobra.Command) []*cobra.Command {
	if below := one.Commands(); len(below) > 0 {
		return below
	}
	return []*cobra.Command{one}
}

// nameOf returns the name of a command, after that of the command above it.
func nameOf(cmd *cobra.Command) string { return strings.TrimPrefix(cmd.CommandPath(), "regent ") }

// unknownCommand completes cobra's error for a command that does not exist: it suggests similar
// ones.
func (c *cli) unknownCommand(err error) error {
	var word string
	if n, _ := fmt.Sscanf(err.Error(), "unknown command %q", &word); n == 0 {
		return err
	}
	var found []string
	names := map[string][]string{} // by their last word
	for _, g := range c.groups {
		for _, one := range g.commands {
			for _, cmd := range append(one.Commands(), one) {
				names[cmd.Name()] = append(names[cmd.Name()], fmt.Sprintf("'regent %s'", nameOf(cmd)))
			}
		}
	}
	for _, name := range nearest(word, names) {
		found = append(found, names[name]...)
	}
	return fmt.Errorf("unknown command %q%s", word, meant(found))
}

// unknownFlag completes the error for a flag that does not exist: it suggests similar ones.
func unknownFlag(cmd *cobra.Command, err error) error {
	unknown, ok := errors.AsType[interface {
		error
		GetSpecifiedName() string
	}](err)
	if !ok || len(unknown.GetSpecifiedName()) < 2 || cmd.Flags().Lookup(unknown.GetSpecifiedName()) != nil {
		return err
	}
	names := map[string]bool{}
	for line := range strings.Lines(cmd.Flags().FlagUsages()) { // hidden flags are not among them
		_, line, _ = strings.Cut(line, "--")
		name, _, _ := strings.Cut(line, " ")
		names[name] = true
	}
	var found []string
	for _, name := range nearest(unknown.GetSpecifiedName(), names) {
		found = append(found, "--"+name)
	}
	return fmt.Errorf("%w%s", err, meant(found))
}

// nearest returns the word if it is a name, or else the names that begin with it or differ from it
// in at most two letters.
func nearest[T any](word string, names map[string]T) []string {
	if _, same := names[word]; same {
		return []string{word}
	}
	all := &cobra.Command{SuggestionsMinimumDistance: 2} // cobra computes the distances
	for name := range names {
		all.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	found := all.SuggestionsFor(word)
	slices.Sort(found)
	return found
}

// meant returns the question whether one of these was meant, or "".
func meant(found []string) string {
	if len(found) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(found, " or ") + "?"
}

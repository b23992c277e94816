package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"regent/store"
)

func (c *cli) migrateCommand() *cobra.Command {
	var spec string
	cmd := &cobra.Command{
		Use:   "migrate --store STORE",
		Short: "Create what a store needs",
		Long: `Create what a store needs before serve can use it, or bring it up to date. Spanner needs tables (on its emulator an instance
and a database as well); the other stores need nothing. To do it again changes nothing.`,
		Example: "  regent migrate --store spanner:projects/P/instances/I/databases/D",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.tellEmulator(spec)
			done, err := store.Migrate(cmd.Context(), spec)
			if err != nil {
				return storeError{spec, err}
			}
			_, err = fmt.Fprintln(c.out, done)
			return err
		},
	}
	cmd.Flags().Var(&value[string]{&spec, "", "STORE", parseText}, "store", "the store, as serve has it")
	c.require(cmd, "store", "REGENT_STORE")
	return cmd
}

// tellEmulator says when it is not the real store that is prepared.
func (c *cli) tellEmulator(spec string) {
	kind, _, _ := strings.Cut(spec, ":")
	variable := strings.ToUpper(kind) + emulatorSuffix
	if host := c.env[variable]; host != "" {
		fmt.Fprintf(c.err, "%s is set: this prepares the emulator at %s\n", variable, host)
	}
}

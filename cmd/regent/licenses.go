package main

import (
	_ "embed"
	"io"

	"github.com/spf13/cobra"
)

// thirdParty is the licenses and notices of the modules in this program; make generate writes it.
//
//go:embed licenses.txt
var thirdParty string

func (c *cli) licensesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "licenses",
		Short: "Print the licenses of the modules in this binary",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(c.out, thirdParty)
			return err
		},
	}
}

package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// source says where a flag's value may come from but for the command line.
type source struct {
	flag     string
	variable string // of the environment; "" if there is none
	required bool
}

// from lets the environment set a flag of cmd that is not on the command line. An empty variable counts as not set.
func (c *cli) from(cmd *cobra.Command, flag, variable string) {
	c.source(cmd, source{flag: flag, variable: variable})
}

// require is from for a flag that has no default.
func (c *cli) require(cmd *cobra.Command, flag, variable string) {
	c.source(cmd, source{flag: flag, variable: variable, required: true})
}

func (c *cli) source(cmd *cobra.Command, s source) {
	if s.variable != "" {
		f := cmd.Flags().Lookup(s.flag)
		f.Usage += "; or " + s.variable
	}
	c.sources[cmd] = append(c.sources[cmd], s)
}

// settle fills in the flags of cmd, and asks for those that are missing.
func (c *cli) settle(cmd *cobra.Command) error {
	if err := c.fill(cmd); err != nil {
		return err
	}
	for _, s := range c.sources[cmd] {
		if s.required && !cmd.Flags().Changed(s.flag) {
			return missing(s)
		}
	}
	return nil
}

// fill gives the flags of cmd that are not on the command line the values of the environment.
func (c *cli) fill(cmd *cobra.Command) error {
	for _, s := range c.sources[cmd] {
		value := c.env[s.variable]
		if value == "" || cmd.Flags().Changed(s.flag) {
			continue
		}
		if err := cmd.Flags().Set(s.flag, value); err != nil {
			return fmt.Errorf("%s: %w", s.variable, err)
		}
	}
	return nil
}

func missing(s source) error {
	if s.variable == "" {
		return fmt.Errorf("--%s is missing", s.flag)
	}
	return fmt.Errorf("--%s is missing; give it, or set %s", s.flag, s.variable)
}

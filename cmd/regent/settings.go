package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// source is an environment variable that sets a flag.
type source struct {
	flag     string
	variable string // "" if there is none
	required bool
	standard func(context.Context) (string, error) // computes the default; nil if it is a constant
}

// from lets environment variables, such as REGENT_TLS_KEY, set flags of cmd that are not on the
// command line. An empty variable counts as not set.
func (c *cli) from(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		c.source(cmd, source{flag: flag, variable: variableOf(flag)})
	}
}

func variableOf(flag string) string {
	return "REGENT_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// require is from for a flag without a default.
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

// resolveFlags reads the flags of cmd from the environment and returns an error if a required one
// is missing.
func (c *cli) resolveFlags(cmd *cobra.Command) error {
	if err := c.applyEnvironment(cmd); err != nil {
		return err
	}
	for _, s := range c.sources[cmd] {
		if cmd.Flags().Changed(s.flag) {
			continue
		}
		if s.required {
			return missing(s)
		}
		if s.standard != nil {
			value, err := s.standard(cmd.Context())
			if err == nil {
				err = cmd.Flags().Set(s.flag, value)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// applyEnvironment sets flags of cmd that are not on the command line from the environment.
func (c *cli) applyEnvironment(cmd *cobra.Command) error {
	for _, s := range c.sources[cmd] {
		value := c.env[s.variable]
		if value == "" || cmd.Flags().Changed(s.flag) {
			continue
		}
		_, bad := strconv.ParseBool(value)
		if bad != nil && cmd.Flags().Lookup(s.flag).Value.Type() == "bool" {
			return fmt.Errorf("%s: %q must be true or false", s.variable, value)
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

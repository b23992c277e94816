package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"regent/leadership"
	"regent/leadership/wire"
)

// wantsDocument reports whether errors are printed as documents. A usage error may come before the
// environment was read.
func (c *cli) wantsDocument(cmd *cobra.Command) bool {
	f := cmd.Flags().Lookup("output")
	return f != nil && (c.output == document || !f.Changed && c.env["REGENT_OUTPUT"] == string(document))
}

// printProblem writes err as the API's problem document, with everything a script may act on.
func (c *cli) printProblem(err error) {
	if text, err := wire.Marshal(c.problem(err)); err == nil {
		c.err.Write(append(text, '\n')) // if standard error fails, only the exit code remains
	}
}

// problem returns the server's problem document, or one for an error on this side.
func (c *cli) problem(err error) wire.Problem {
	var refusal *leadership.Error
	if errors.As(err, &refusal) {
		return wire.NewProblem(refusal)
	}
	return wire.NewProblem(&leadership.Error{Code: codeOf(err), Detail: c.sentence(err)})
}

func codeOf(err error) leadership.Code {
	code := wire.Internal
	switch {
	case errors.As(err, new(usageError)):
		return leadership.InvalidArgument
	case errors.As(err, &code):
	case errors.Is(err, context.DeadlineExceeded):
		return leadership.StoreUnavailable
	}
	return code
}

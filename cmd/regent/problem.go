package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"regent/leadership"
	"regent/leadership/wire"
)

// wantsDocument says whether errors are told as documents too. A mistake in the command line may come before the environment was read.
func (c *cli) wantsDocument(cmd *cobra.Command) bool {
	f := cmd.Flags().Lookup("output")
	return f != nil && (c.output == document || !f.Changed && c.env["REGENT_OUTPUT"] == string(document))
}

// printProblem writes the error as the API's problem document, with all that a script may act on.
func (c *cli) printProblem(err error) {
	if text, err := wire.Marshal(c.problem(err)); err == nil {
		c.err.Write(append(text, '\n')) // if standard error fails, the exit code has to do
	}
}

// problem is what the server said, or what it would say of an error on this side.
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

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"regent/leadership"
	"regent/leadership/wire"
)

// Exit codes. Scripts rely on them; 'regent help all' has the table.
const (
	exitDone        = 0
	exitOther       = 1
	exitUsage       = 2
	exitHeld        = 3
	exitLost        = 4
	exitUnreachable = 5
	exitTimedOut    = 6
	exitDiffers     = 7
	exitConflict    = 8
	exitSome        = 9
)

// usageError is a mistake in the command line or in a setting.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// report prints what went wrong and what to do next, and returns the exit code.
func (c *cli) report(cmd *cobra.Command, args []string, err error) int {
	if err != nil && !c.started {
		err = usageError{c.unknownCommand(err)}
		if mistake, _, ok := strings.Cut(err.Error(), ": strconv.ParseBool:"); ok { // a flag of cobra's
			err = usagef("%s: must be true or false", mistake)
		}
	}
	code := exitCode(err)
	if status, ended := errors.AsType[exitStatus](err); code == exitDone || ended && status.error == nil { // the code alone is enough
		return code
	}
	if c.wantsDocument(cmd, args) {
		text, _ := wire.Marshal(c.problem(err))
		c.err.Write(append(text, '\n')) // if standard error fails, only the exit code remains
		return code
	}
	fmt.Fprintf(c.err, "regent: %s\n", c.sentence(err))
	if advice := c.advice(cmd, err); advice != "" {
		fmt.Fprintln(c.err, advice)
	}
	return code
}

func exitCode(err error) int {
	status, ended := errors.AsType[exitStatus](err)
	switch {
	case err == nil, stdoutClosed(err):
		return exitDone
	case ended:
		return status.code
	case errors.As(err, new(usageError)), errors.Is(err, leadership.InvalidArgument):
		return exitUsage
	case errors.As(err, new(timedOut)):
		return exitTimedOut
	case errors.Is(err, leadership.LeaseHeld), errors.Is(err, leadership.TokenStale), errors.Is(err, leadership.ReadOnly), errors.Is(err, leadership.NotReady):
		return exitHeld
	case errors.Is(err, leadership.LeaseLost):
		return exitLost
	case unreachable(err):
		return exitUnreachable
	}
	return exitOther
}

// stdoutClosed reports whether the reader of standard output closed it.
func stdoutClosed(err error) bool {
	return errors.As(err, new(outputError)) && errors.Is(err, syscall.EPIPE)
}

func unreachable(err error) bool {
	return errors.Is(err, leadership.StoreUnavailable) || errors.Is(err, leadership.RecordTooNew) || errors.Is(err, leadership.OutcomeUnknown) ||
		errors.Is(err, wire.Draining) || errors.Is(err, wire.RequestTimeout) || errors.Is(err, context.DeadlineExceeded) || noServer(err) != nil || peerAway(err)
}

// peerAway reports whether the server could not ask the peer that via names.
func peerAway(err error) bool {
	refusal, ok := errors.AsType[*leadership.Error](err)
	return ok && refusal.Code == leadership.NotEligible && refusal.RetryAfter > 0
}

// storeError says that this process could not open or prepare a store.
type storeError struct {
	spec string
	error
}

func (e storeError) Unwrap() error { return e.error }

// noServer returns the cause if no Regent server answered, and nil otherwise.
func noServer(err error) *url.Error {
	var cause *url.Error
	if !errors.As(err, new(storeError)) && !errors.As(err, new(usageError)) { // those may have a URL error of Google's APIs as their cause
		errors.As(err, &cause)
	}
	return cause
}

// untrusted reports whether what answered is not known to be the server.
func untrusted(err error) bool {
	return noServer(err) != nil && errors.As(err, new(*tls.CertificateVerificationError))
}

// certificateFile says why the file of SSL_CERT_FILE is of no use; "" if it is, or there is none.
func (c *cli) certificateFile() string {
	name := c.env["SSL_CERT_FILE"]
	if name == "" {
		return ""
	}
	text, err := os.ReadFile(name)
	if err == nil && !x509.NewCertPool().AppendCertsFromPEM(text) {
		err = fmt.Errorf("%s has no certificate", name)
	}
	if err != nil {
		return fmt.Sprintf(" It is set, and cannot be used: %v.", err)
	}
	return ""
}

// sentence returns err in one line. For a refusal this is the detail meant for people.
func (c *cli) sentence(err error) string {
	text := err.Error()
	refusal, refused := refusalIn(err)
	opening, closed := errors.AsType[storeError](err)
	switch cause := noServer(err); {
	case closed && unreachable(err):
		text = fmt.Sprintf("the store %s does not answer; check its name, the network and the credentials, or choose another with --store: %v", opening.spec, err)
	case cause != nil && errors.Is(err, context.DeadlineExceeded):
		text = fmt.Sprintf("%s did not answer within %v", c.server, c.timeout)
	case untrusted(err):
		text = fmt.Sprintf("the certificate of %s is not trusted: %v", c.server, cause.Err)
	case cause != nil:
		text = fmt.Sprintf("%s does not answer: %v", c.server, cause.Err)
	case refused && refusal.Detail != "":
		text = refusal.Detail
		if unreachable(err) { // the detail only makes sense beside the code
			text = wire.MeaningOf(refusal.Code).Title + ": " + text
		}
	}
	return strings.Join(strings.Fields(text), " ")
}

// refusalIn returns the refusal that err stands for. A usage error says more than one in it.
func refusalIn(err error) (*leadership.Error, bool) {
	if errors.As(err, new(usageError)) {
		return nil, false
	}
	return errors.AsType[*leadership.Error](err)
}

// advice returns what to do next, or "" if the sentence already says it.
func (c *cli) advice(cmd *cobra.Command, err error) string {
	approval, unsure := errors.AsType[unsureApproval](err)
	switch {
	case unsure:
		return fmt.Sprintf("It may have been done. Run the same command again with --if-revision %d, so that it counts once.", approval.at)
	case errors.As(err, new(usageError)), errors.Is(err, leadership.InvalidArgument):
		return fmt.Sprintf("Run '%s --help' for usage.", cmd.CommandPath())
	case errors.Is(err, leadership.OutcomeUnknown):
		return "It may have been done. Run the same command again to find out; for acquire only with a key of your own."
	case errors.Is(err, leadership.LeaseHeld) && cmd.Name() == "delete":
		return "Use --force to delete it anyway."
	case errors.Is(err, wire.Unauthenticated):
		return "Identify yourself with --id-token-file FILE or, on Google Cloud, with --audience AUDIENCE."
	case untrusted(err):
		return "SSL_CERT_FILE names a file with the certificates of an authority of your own, in PEM." + c.certificateFile()
	case noServer(err) != nil:
		return "Start a server with 'regent serve', or name another with --server or REGENT_SERVER."
	}
	return ""
}

// wantsDocument reports whether errors are printed as documents. A usage error may come before all
// flags and the environment were read.
func (c *cli) wantsDocument(cmd *cobra.Command, args []string) bool {
	if c.started {
		return cmd.Flags().Lookup("output") != nil && c.output == document
	}
	if cmd.Flags().Lookup("output") == nil && !cmd.HasSubCommands() { // of an unknown command no flags are known
		return false
	}
	how := c.env["REGENT_OUTPUT"]
	for i, arg := range args {
		if arg == "--" {
			break
		}
		if value, found := strings.CutPrefix(arg, "--output="); found {
			how = value
		} else if arg == "--output" && i+1 < len(args) {
			how = args[i+1]
		}
	}
	return how == string(document)
}

// problem returns the server's problem document, or one for an error on this side.
func (c *cli) problem(err error) wire.Problem {
	if refusal, ok := refusalIn(err); ok {
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

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"regent/leadership"
	"regent/leadership/client"
)

// keyFlags are the flags that give a key. The value is parsed later, by hand, because the flag
// library prints values that it cannot parse.
type keyFlags struct {
	text string
	file string
}

func (k *keyFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&k.text, "key", "", "the candidate's `KEY`; prefer REGENT_KEY or --key-file, because others on this machine can read command lines")
	cmd.Flags().StringVar(&k.file, "key-file", "", "`FILE` that holds the key; - is standard input")
}

// addFor is add for a command about a candidate that has asked for the lease before. It also adds
// the flag of its id.
func (k *keyFlags) addFor(c *cli, cmd *cobra.Command, id *leadership.CandidateID) {
	k.add(cmd)
	c.addCandidate(cmd, id, "the candidate's id", c.sameCandidate)
}

// keyFileLimit is far more than the 43 characters of a key; it limits the memory that a wrong file
// takes.
const keyFileLimit = 1 << 10

// key reads the key named by the flags or, without them, by REGENT_KEY. It returns nil if none is
// named.
func (c *cli) key(k keyFlags) (*leadership.Key, error) {
	source, text := "--key", k.text
	switch {
	case k.text != "" && k.file != "":
		return nil, usagef("give --key or --key-file, not both")
	case k.file != "":
		b, err := c.readFile(k.file, keyFileLimit)
		if err != nil {
			return nil, fmt.Errorf("--key-file: %w", err)
		}
		source, text = "--key-file "+k.file, string(b)
	case text == "":
		source, text = "REGENT_KEY", c.env["REGENT_KEY"]
		if text == "" {
			return nil, nil
		}
	}
	key, err := leadership.ParseKey(strings.TrimSpace(text))
	if err != nil {
		return nil, usagef("%s: %w", source, err)
	}
	return &key, nil
}

// requireKey is key for a command that needs one.
func (c *cli) requireKey(k keyFlags) (leadership.Key, error) {
	key, err := c.key(k)
	switch {
	case err != nil:
		return leadership.Key{}, err
	case key == nil:
		return leadership.Key{}, usagef("the key is missing; set REGENT_KEY, --key-file or --key to the key that acquire printed or was given")
	}
	return *key, nil
}

// nameOfFile returns the path, or "standard input" for -.
func nameOfFile(path string) string {
	if path == "-" {
		return "standard input"
	}
	return path
}

// readFile reads a file, or standard input for -, up to a byte more than the limit.
func (c *cli) readFile(path string, limit int64) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(io.LimitReader(c.in, limit+1))
	}
	b, err := readFile(path, limit)
	if err != nil {
		err = usageError{err}
	}
	return b, err
}

func readFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit+1))
}

// bearerFlags select the ID token that identifies the caller to the server.
type bearerFlags struct {
	audience string
	file     string
}

func (c *cli) addBearer(cmd *cobra.Command) {
	cmd.Flags().Var(&value[string]{&c.bearer.audience, "", "AUDIENCE", parseText}, "audience", "identify the caller by an ID token for this audience from Google Cloud's metadata server")
	cmd.Flags().Var(&value[string]{&c.bearer.file, "", "FILE", parseText}, "id-token-file", "identify the caller by the ID token in this file, which is read for each request")
	cmd.MarkFlagsMutuallyExclusive("audience", "id-token-file")
	c.from(cmd, "audience", "id-token-file")
}

// credential returns the function for client.Config.Credential, or nil if no flag asks for one.
func (f bearerFlags) credential() func(context.Context) (string, error) {
	switch {
	case f.file != "":
		return f.read
	case f.audience != "":
		return client.MetadataCredential(f.audience)
	}
	return nil
}

// maxTokenFile is larger than any token a server accepts.
const maxTokenFile = 16 << 10

// read reads the file for each request, because ID tokens are replaced before they expire.
func (f bearerFlags) read(context.Context) (string, error) {
	text, err := readFile(f.file, maxTokenFile)
	if err != nil {
		return "", fmt.Errorf("--id-token-file: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return "", errors.New("--id-token-file: the file does not contain an ID token")
	}
	return token, nil
}

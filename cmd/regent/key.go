package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"regent/leadership"
)

// keyFlags are the ways to name a key. The flag's value is parsed later, by hand, because the flag
// library prints values that it cannot parse.
type keyFlags struct {
	text string
	file string
}

func (k *keyFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&k.text, "key", "", "the candidate's `KEY`; prefer REGENT_KEY or --key-file, because others on this machine can read command lines")
	cmd.Flags().StringVar(&k.file, "key-file", "", "`FILE` that holds the key; - is standard input")
}

// keyFileLimit is far more than the 43 characters of a key, and bounds what a wrong file can cost.
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

// nameOfFile is the path, or what - stands for.
func nameOfFile(path string) string {
	if path == "-" {
		return "standard input"
	}
	return path
}

// readFile reads a file, or standard input for -, up to a byte more than the limit.
func (c *cli) readFile(path string, limit int64) ([]byte, error) {
	in := c.in
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, usageError{err}
		}
		defer f.Close()
		in = f
	}
	return io.ReadAll(io.LimitReader(in, limit+1))
}

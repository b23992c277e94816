package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"regent/leadership/client"
)

// bearerFlags say how a command tells the server who calls.
type bearerFlags struct {
	audience string
	file     string
}

func (c *cli) addBearer(cmd *cobra.Command) {
	cmd.Flags().Var(&value[string]{&c.bearer.audience, "", "AUDIENCE", parseText}, "audience", "say who calls by an ID token that Google Cloud's metadata server gives for this audience")
	cmd.Flags().Var(&value[string]{&c.bearer.file, "", "FILE", parseText}, "id-token-file", "say who calls by the ID token in this file, which is read for each request")
	cmd.MarkFlagsMutuallyExclusive("audience", "id-token-file")
	c.from(cmd, "audience", "REGENT_AUDIENCE")
	c.from(cmd, "id-token-file", "REGENT_ID_TOKEN_FILE")
}

// token is the client.Config.Token of the flags; nil if the server does not ask.
func (f bearerFlags) token() func(context.Context) (string, error) {
	switch {
	case f.file != "":
		return f.read
	case f.audience != "":
		return client.MetadataToken(f.audience)
	}
	return nil
}

// maxTokenFile is more than any server takes.
const maxTokenFile = 16 << 10

// read reads the file each time: whoever keeps it there replaces it before the token expires.
func (f bearerFlags) read(context.Context) (string, error) {
	in, err := os.Open(f.file)
	if err != nil {
		return "", fmt.Errorf("--id-token-file: %w", err)
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, maxTokenFile))
	if err != nil {
		return "", fmt.Errorf("--id-token-file: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return "", errors.New("--id-token-file: the file has no token in it")
	}
	return token, nil
}

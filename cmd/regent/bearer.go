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
		return "", errors.New("--id-token-file: the file does not contain an ID token")
	}
	return token, nil
}

package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"regent/leadership/client"
)

// credentialVersion is the version of the form in which a client of Kubernetes gets its token from
// a command.
const credentialVersion = "client.authentication.k8s.io/v1"

// kubeconfigCommand prints a kubeconfig for the server, as JSON, which is also YAML.
func (c *cli) kubeconfigCommand() *cobra.Command {
	namespace, authority := "default", ""
	cmd := &cobra.Command{
		Use:   "kubeconfig [--server URL] [--namespace NAME]",
		Short: "Print a kubeconfig for the Leases of a server",
		Long: `Print a kubeconfig that points kubectl, client-go and other clients of Kubernetes at the Leases of a server, which was
started with 'regent serve --kubernetes'. Nothing is sent to the server.

  regent kubeconfig --server https://regent.example.com > regent.kubeconfig
  kubectl --kubeconfig regent.kubeconfig get leases

The kubeconfig holds no credential. With --audience, clients run 'regent admin credential' for one, and again when it
expires: regent must be in their PATH. With --id-token-file, they read it from that file, and again when it has
changed.`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			if _, err := c.connectWith(client.Config{}); err != nil { // it checks the address
				return err
			}
			user, err := c.bearer.kubernetesUser()
			if err != nil {
				return err
			}
			cluster := map[string]any{"server": c.server}
			if authority != "" {
				if cluster["certificate-authority"], err = filepath.Abs(authority); err != nil {
					return err
				}
			}
			return c.printJSON(map[string]any{
				"apiVersion": "v1", "kind": "Config", "current-context": "regent",
				"clusters": []any{map[string]any{"name": "regent", "cluster": cluster}},
				"users":    []any{map[string]any{"name": "regent", "user": user}},
				"contexts": []any{map[string]any{"name": "regent", "context": map[string]any{"cluster": "regent", "user": "regent", "namespace": namespace}}},
			})
		},
	}
	cmd.Flags().Var(&value[string]{&namespace, "default", "NAME", parseNamespace}, "namespace", "the namespace of clients that name none")
	cmd.Flags().Var(&value[string]{&authority, "", "FILE", parseText}, "certificate-authority", "clients trust the certificates that those in this file have signed (default: those that the system trusts)")
	c.addRemote(cmd)
	return cmd
}

// kubernetesUser returns the user of a kubeconfig that identifies itself as f does.
func (f bearerFlags) kubernetesUser() (map[string]any, error) {
	switch {
	case f.audience != "":
		return map[string]any{"exec": map[string]any{
			"apiVersion": credentialVersion, "command": "regent", "args": []string{"admin", "credential", "--audience", f.audience},
			"interactiveMode": "Never", "provideClusterInfo": false,
			"installHint": "regent must be in PATH: it gets the ID token for the Regent server",
		}}, nil
	case f.file != "": // clients resolve a relative path from the kubeconfig's folder
		path, err := filepath.Abs(f.file)
		return map[string]any{"tokenFile": path}, err
	}
	return map[string]any{}, nil
}

// namespaceForm is the name of a namespace of Kubernetes.
var namespaceForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func parseNamespace(text string) (string, error) {
	if !namespaceForm.MatchString(text) {
		return "", fmt.Errorf("%q is not the name of a namespace: it has from 1 to 63 of a-z, 0-9 and '-', and begins and ends with a letter or digit", text)
	}
	return text, nil
}

func (c *cli) credentialCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "credential (--audience AUDIENCE | --id-token-file FILE)",
		Short: "Print an ID token as clients of Kubernetes read it",
		Long: `Print an ID token as an ExecCredential of ` + credentialVersion + `, with the time until which a client may keep it.
Clients run this command by themselves, as the kubeconfig tells them.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ask := c.bearer.credential()
			if ask == nil {
				return usagef("give --audience AUDIENCE or --id-token-file FILE")
			}
			token, err := ask(cmd.Context())
			if err != nil {
				return err
			}
			status := map[string]any{"token": token}
			if at, ok := useBefore(token); ok {
				status["expirationTimestamp"] = at.UTC().Format(time.RFC3339)
			}
			return c.printJSON(map[string]any{"apiVersion": credentialVersion, "kind": "ExecCredential", "status": status})
		},
	}
	c.addBearer(cmd)
	return cmd
}

// useBefore returns when a token should be replaced: a minute before it expires. ok is false if the
// token does not say when. It does not verify the token; the server does.
func useBefore(token string) (at time.Time, ok bool) {
	part := strings.Split(token, ".")
	if len(part) != 3 {
		return at, false
	}
	text, err := base64.RawURLEncoding.DecodeString(part[1])
	var claims struct {
		Expires int64 `json:"exp"`
	}
	if err != nil || json.Unmarshal(text, &claims) != nil || claims.Expires == 0 {
		return at, false
	}
	return time.Unix(claims.Expires, 0).Add(-time.Minute), true
}

// printJSON prints a document for a program that reads it.
func (c *cli) printJSON(v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return c.printLines(string(text))
}

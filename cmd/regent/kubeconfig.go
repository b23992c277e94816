package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
)

// kubeconfigCommand prints what points a client of Kubernetes at the server. It is written as JSON,
// which every reader of YAML reads.
func (c *cli) kubeconfigCommand() *cobra.Command {
	namespace := "default"
	cmd := &cobra.Command{
		Use:   "kubeconfig [--server URL] [--namespace NAME]",
		Short: "Print a kubeconfig for the Leases of a server",
		Long: `Print a kubeconfig that points kubectl, client-go and other clients of Kubernetes at the Leases of a server, which was
started with 'regent serve --kubernetes'. Nothing is sent to the server.

  regent kubeconfig --server https://regent.example.com > regent.kubeconfig
  kubectl --kubeconfig regent.kubeconfig get leases

With --id-token-file, clients read the token from that file, and read it again when it has changed.`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			if _, err := c.connect(); err != nil { // it checks the address
				return err
			}
			if c.bearer.audience != "" {
				return usagef("a kubeconfig has no place for --audience: have a program keep an ID token in a file, and give --id-token-file")
			}
			user := map[string]any{}
			if c.bearer.file != "" {
				user["tokenFile"] = c.bearer.file
			}
			text, err := json.MarshalIndent(map[string]any{
				"apiVersion": "v1", "kind": "Config", "current-context": "regent",
				"clusters": []any{map[string]any{"name": "regent", "cluster": map[string]any{"server": c.server}}},
				"users":    []any{map[string]any{"name": "regent", "user": user}},
				"contexts": []any{map[string]any{"name": "regent", "context": map[string]any{"cluster": "regent", "user": "regent", "namespace": namespace}}},
			}, "", "  ")
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(c.out, string(text))
			return err
		},
	}
	cmd.Flags().Var(&value[string]{&namespace, "default", "NAME", parseText}, "namespace", "the namespace of clients that name none")
	c.addRemote(cmd)
	return cmd
}

package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestAKubeconfigNamesTheServerAndTheTokenFile(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	code := run(t.Context(), strings.Fields("kubeconfig --server https://regent.test --id-token-file /run/token --namespace jobs"), system{strings.NewReader(""), &out, &errs, nil})
	var got struct {
		CurrentContext string `json:"current-context"`
		Clusters       []struct{ Cluster struct{ Server string } }
		Users          []struct{ User struct{ TokenFile string } }
		Contexts       []struct{ Context struct{ Namespace string } }
	}
	if err := json.Unmarshal(out.Bytes(), &got); code != 0 || err != nil {
		t.Fatalf("exit code %d, %v: %s%s", code, err, out.String(), errs.String())
	}
	if got.CurrentContext != "regent" || got.Clusters[0].Cluster.Server != "https://regent.test" || got.Users[0].User.TokenFile != "/run/token" || got.Contexts[0].Context.Namespace != "jobs" {
		t.Errorf("got %s", out.String())
	}
}

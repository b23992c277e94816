package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// say runs a command that must do well, and returns what it prints.
func say(t *testing.T, args ...string) []byte {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(t.Context(), args, system{strings.NewReader(""), &out, &errs, nil}); code != 0 || errs.Len() > 0 {
		t.Fatalf("%q: exit code %d: %s", args, code, errs.String())
	}
	return out.Bytes()
}

func TestAKubeconfigNamesTheServerAndTheTokenFile(t *testing.T) {
	t.Parallel()
	text := say(t, "kubeconfig", "--server", "https://regent.test", "--id-token-file", "/run/token", "--namespace", "jobs")
	var got struct {
		CurrentContext string `json:"current-context"`
		Clusters       []struct{ Cluster struct{ Server string } }
		Users          []struct{ User struct{ TokenFile string } }
		Contexts       []struct{ Context struct{ Namespace string } }
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if got.CurrentContext != "regent" || got.Clusters[0].Cluster.Server != "https://regent.test" || got.Users[0].User.TokenFile != "/run/token" || got.Contexts[0].Context.Namespace != "jobs" {
		t.Errorf("got %s", text)
	}
}

func TestAKubeconfigHoldsNoTokenAndRunsTheCommandThatPrintsOne(t *testing.T) {
	t.Parallel()
	var got struct {
		Users []struct {
			User struct {
				Exec struct {
					APIVersion, Command, InteractiveMode string
					Args                                 []string
				}
			}
		}
	}
	text := say(t, "kubeconfig", "--server", "https://regent.test", "--audience", "https://regent.test")
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	e := got.Users[0].User.Exec
	if e.APIVersion != "client.authentication.k8s.io/v1" || e.Command != "regent" || e.InteractiveMode != "Never" || !slices.Equal(e.Args, []string{"kubeconfig", "credential", "--audience", "https://regent.test"}) {
		t.Errorf("got %s", text)
	}
}

func TestACredentialSaysUntilWhenItsTokenIsOfUse(t *testing.T) {
	t.Parallel()
	for token, want := range map[string]string{
		"e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"exp":1900000000}`)) + ".c2ln": "2030-03-17T17:45:40Z",
		"e30.e30.c2ln": "", "e30.!.c2ln": "", "opaque": "",
	} {
		file := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		var got struct {
			APIVersion, Kind string
			Status           struct{ Token, ExpirationTimestamp string }
		}
		text := say(t, "kubeconfig", "credential", "--id-token-file", file)
		if err := json.Unmarshal(text, &got); err != nil || got.APIVersion != "client.authentication.k8s.io/v1" || got.Kind != "ExecCredential" || got.Status.Token != token || got.Status.ExpirationTimestamp != want {
			t.Errorf("%s: got %s, %v", token, text, err)
		}
	}
}

func TestAKubeconfigNamesFilesByTheirFullPathsAndNoNamespaceThatCannotBe(t *testing.T) {
	t.Parallel()
	here, err := filepath.Abs("token")
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(here)
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"--id-token-file", "--certificate-authority"} {
		if text := say(t, "kubeconfig", "--server", "https://regent.test", flag, "token"); !bytes.Contains(text, want) {
			t.Errorf("%s: got %s, want the path %s", flag, text, want)
		}
	}
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"kubeconfig", "--namespace", "A_b"}, system{strings.NewReader(""), &out, &errs, nil}); code == 0 || out.Len() > 0 || !strings.Contains(errs.String(), "A_b") {
		t.Errorf("exit code %d: %s%s", code, out.String(), errs.String())
	}
}

package terraform

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/emulators/need"
	"regent/test/process"
)

var update = flag.Bool("update", false, "write the golden files anew")

const repository = "../.." // from here

// checkout is a copy of the parts of the repository that the module needs, so that nothing is left
// in the work tree.
type checkout struct {
	root   string // of the copy
	config string // for Terraform: our provider, and no network
}

// folder is the folder of the module, or of an example, in the copy.
func (c checkout) folder(example string) string {
	if example == "" {
		return filepath.Join(c.root, "terraform")
	}
	return filepath.Join(c.root, "terraform", "examples", example)
}

// newCheckout returns a copy with all its folders initialized. Without Terraform the test is
// skipped, unless everything must be proved.
func newCheckout(t *testing.T, examples ...string) checkout {
	t.Helper()
	needTerraform(t)
	mirror := t.TempDir()
	provider := filepath.Join(mirror, "registry.terraform.io/hashicorp/google/6.50.0", runtime.GOOS+"_"+runtime.GOARCH, "terraform-provider-google_v6.50.0")
	require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(provider), 0o700), os.Symlink(process.Program{Package: "./provider"}.Path(t), provider)))
	c := checkout{root: t.TempDir()}
	c.config = filepath.Join(c.root, "terraform.rc")
	write(t, c.config, fmt.Sprintf("provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\ndisable_checkpoint = true\n", mirror))
	for _, part := range []string{"terraform", "store/spanner/schema.sql"} {
		c.add(t, part)
	}
	for _, example := range examples {
		c.must(t, c.folder(example), "init", "-input=false")
	}
	return c
}

// add copies a file or a folder of the repository, without what Terraform may have left in it.
func (c checkout) add(t *testing.T, part string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(repository, part), func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch left := strings.HasPrefix(entry.Name(), ".terraform"); {
		case left && entry.IsDir():
			return fs.SkipDir
		case left || entry.IsDir():
			return nil
		}
		to := filepath.Join(c.root, strings.TrimPrefix(file, repository))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		write(t, to, read(t, file))
		return nil
	})
	require.NoError(t, err)
}

func needTerraform(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("terraform"); err != nil {
		need.Lacks(t, "terraform is not in PATH; install 1.9 or later from https://developer.hashicorp.com/terraform/install")
	}
}

// run runs Terraform, and returns what it printed.
func (c checkout) run(ctx context.Context, folder string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "terraform", append([]string{args[0], "-no-color"}, args[1:]...)...)
	cmd.Dir = folder
	for _, v := range os.Environ() { // without variables that would change what Terraform does
		if !strings.HasPrefix(v, "TF_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "TF_CLI_CONFIG_FILE="+c.config, "TF_IN_AUTOMATION=1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// must is run; an error fails the test.
func (c checkout) must(t *testing.T, folder string, args ...string) string {
	t.Helper()
	out, err := c.run(t.Context(), folder, args...)
	if err != nil {
		t.Fatalf("terraform %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// variables writes a file of variables, and returns the flag that names it.
func (c checkout) variables(t *testing.T, values ...map[string]any) string {
	t.Helper()
	all := map[string]any{}
	for _, some := range values {
		maps.Copy(all, some)
	}
	text, err := json.Marshal(all)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "test.tfvars.json")
	write(t, file, string(text))
	return "-var-file=" + file
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}

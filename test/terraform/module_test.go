package terraform

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var examples = []string{"firestore", "spanner", "multi-region", "regional-leaders"}

func TestModuleIsFormatted(t *testing.T) {
	t.Parallel()
	needTerraform(t)
	out, err := exec.CommandContext(t.Context(), "terraform", "fmt", "-check", "-diff", "-recursive", repository+"/terraform").CombinedOutput()
	if err != nil {
		t.Fatalf("run terraform fmt -recursive terraform: %v\n%s", err, out)
	}
}

// A misspelt argument must be found here, or the tests of plans find nothing.
func TestProviderKnowsTheRealArguments(t *testing.T) {
	t.Parallel()
	c := newCheckout(t, "")
	file := filepath.Join(c.folder(""), "firestore.tf")
	write(t, file, strings.Replace(read(t, file), "delete_protection_state ", "delete_protection ", 1))
	out, err := c.run(t.Context(), c.folder(""), "validate")
	if says := `An argument named "delete_protection" is not expected here.`; err == nil || !strings.Contains(strings.Join(strings.Fields(out), " "), says) {
		t.Errorf("terraform validate says\n%s, want: %s", out, says)
	}
}

func TestTerraformsOwnTestsPass(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(repository + "/terraform/tests/*.tftest.hcl")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no tests: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			c := newCheckout(t, "")
			for _, store := range []string{"firestore.tf", "spanner.tf"} { // before 1.14 it would keep Terraform from tearing down
				store = filepath.Join(c.folder(""), store)
				write(t, store, strings.ReplaceAll(read(t, store), "prevent_destroy = true", ""))
			}
			c.must(t, c.folder(""), "test", "-filter=tests/"+filepath.Base(file))
		})
	}
}

var declaration = regexp.MustCompile(`(?ms)^(variable|output) "([^"]+)" \{\n(.*?)^\}`)

func TestVariablesAreTypedDescribedAndValidated(t *testing.T) {
	t.Parallel()
	all := declaration.FindAllStringSubmatch(read(t, repository+"/terraform/variables.tf"), -1)
	if len(all) < 30 {
		t.Fatalf("found %d variables only", len(all))
	}
	for _, v := range all {
		name, body := v[2], v[3]
		for _, needed := range []string{"\n  type ", "  description = "} {
			if !strings.Contains("\n"+body, needed) {
				t.Errorf("variable %q has no %s", name, strings.Trim(needed, "\n ="))
			}
		}
		if strings.Contains(body, "= bool\n") {
			continue // every value is valid
		}
		if !strings.Contains(body, "validation {") {
			t.Errorf("variable %q takes anything", name)
		}
		if !slices.ContainsFunc(hostile, func(c attack) bool { return c.refuses == name }) {
			t.Errorf("no test gives variable %q a value that it has to refuse", name)
		}
	}
}

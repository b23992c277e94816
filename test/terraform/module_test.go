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

func TestModuleAndExamplesAreValid(t *testing.T) {
	t.Parallel()
	for _, example := range append([]string{""}, examples...) {
		t.Run("module "+example, func(t *testing.T) {
			t.Parallel()
			c := newCheckout(t, example)
			c.must(t, c.folder(example), "validate")
		})
	}
}

// A misspelt or missing argument must be found here, or the test above finds nothing.
func TestProviderKnowsTheRealArguments(t *testing.T) {
	t.Parallel()
	for _, slip := range []struct{ from, to, says string }{
		{"delete_protection_state ", "delete_protection ", `An argument named "delete_protection" is not expected here.`},
		{"location_id ", "database_edition ", `The argument "location_id" is required`},
		{"daily_recurrence {}", "hourly_recurrence {}", `Blocks of type "hourly_recurrence" are not expected here.`},
	} {
		t.Run(strings.TrimSpace(slip.from), func(t *testing.T) {
			t.Parallel()
			c := newCheckout(t, "")
			file := filepath.Join(c.folder(""), "firestore.tf")
			text := read(t, file)
			if !strings.Contains(text, slip.from) {
				t.Fatalf("firestore.tf has no %q to mistake", slip.from)
			}
			write(t, file, strings.Replace(text, slip.from, slip.to, 1))
			out, err := c.run(t.Context(), c.folder(""), "validate")
			if err == nil || !strings.Contains(strings.Join(strings.Fields(out), " "), slip.says) {
				t.Errorf("terraform validate says\n%s, want: %s", out, slip.says)
			}
		})
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

func TestOutputsAreDescribed(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"", "/examples/firestore", "/examples/spanner", "/examples/multi-region", "/examples/regional-leaders"} {
		for _, o := range declaration.FindAllStringSubmatch(read(t, repository+"/terraform"+folder+"/outputs.tf"), -1) {
			if !strings.Contains(o[3], "description = ") {
				t.Errorf("output %q of the module%s has no description", o[2], folder)
			}
		}
	}
}

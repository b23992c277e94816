package terraform

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// keepers are the types of which no resource may be deleted by a plan: an empty store starts all
// tokens from 1 again, and an empty registry has no image to start.
var keepers = []string{
	"google_firestore_database", "google_spanner_instance", "google_spanner_database", "google_artifact_registry_repository",
}

func TestNoPlanDeletesTheStore(t *testing.T) {
	t.Parallel()
	for store, other := range map[string]string{"firestore": "spanner", "spanner": "firestore"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			c := newCheckout(t, "")
			was := vars{"store": store, "regions": []string{"europe-west1", "europe-west4"}, "domain": "regent.example.com"}
			c.must(t, c.folder(""), "apply", "-input=false", "-auto-approve", c.variables(t, right, was))
			for name, now := range map[string]vars{
				"another first region": {"regions": []string{"europe-west4"}, "deletion_protection": false},
				"other locations":      {"firestore_location": "eur3", "spanner_config": "regional-europe-west4"},
			} {
				deleted := c.deletes(t, c.variables(t, right, was, now))
				if now["regions"] != nil && !slices.Contains(deleted, `google_cloud_run_v2_service.main["europe-west1"]`) {
					t.Errorf("%s: the service of the region that has gone stays; deleted are %q", name, deleted)
				}
				for _, address := range deleted {
					if kind, _, _ := strings.Cut(address, "."); slices.Contains(keepers, kind) {
						t.Errorf("%s: the plan deletes %s", name, address)
					}
				}
			}
			for name, args := range map[string][]string{
				"another store":    {c.variables(t, right, was, vars{"store": other, "deletion_protection": false})},
				"another database": {c.variables(t, right, was, vars{store + "_database": "regent-2"})},
				"nothing any more": {"-destroy", c.variables(t, right, was, vars{"deletion_protection": false})},
			} {
				out, err := c.run(t.Context(), c.folder(""), append([]string{"plan", "-input=false"}, args...)...)
				refused := "Resource google_" + store + "_" // its database or instance
				if err == nil || !strings.Contains(out, "Instance cannot be destroyed") || !strings.Contains(strings.Join(strings.Fields(out), " "), refused) {
					t.Errorf("%s: terraform says\n%s, want: %s", name, out, refused)
				}
			}
		})
	}
}

// deletes are the addresses that the plan would delete, or replace.
func (c checkout) deletes(t *testing.T, variables string) []string {
	t.Helper()
	c.must(t, c.folder(""), "plan", "-input=false", "-out=plan", variables)
	var shown struct {
		Changes []struct {
			Address string
			Change  struct{ Actions []string }
		} `json:"resource_changes"`
	}
	require.NoError(t, json.Unmarshal([]byte(c.must(t, c.folder(""), "show", "-json", "plan")), &shown))
	var all []string
	for _, r := range shown.Changes {
		if slices.Contains(r.Change.Actions, "delete") {
			all = append(all, r.Address)
		}
	}
	return all
}

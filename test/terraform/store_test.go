package terraform

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// preparesTheStore compares with what the store of the plan needs.
func (p plan) preparesTheStore(t *testing.T) {
	t.Helper()
	for _, r := range p.resources {
		switch r.Type {
		case "google_spanner_database":
			createsTheTables(t, list(r.Values["ddl"]))
			return
		case "google_firestore_database":
			p.preparesTheFields(t)
			return
		}
	}
	t.Error("there is no store")
}

// createsTheTables checks that the statements are those of the file that the store is built with,
// all of them and in order.
func createsTheTables(t *testing.T, ddl []string) {
	t.Helper()
	comment := regexp.MustCompile(`(?m)^--.*\n`)
	want := strings.Fields(comment.ReplaceAllString(read(t, repository+"/store/spanner/schema.sql"), ""))
	got := strings.Fields(strings.Join(ddl, ";\n") + ";")
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the tables are not those of schema.sql (-schema.sql +terraform):\n%s", d)
	}
	if len(ddl) < 5 {
		t.Errorf("there are %d statements, which cannot be all", len(ddl))
	}
}

// preparesTheFields compares with "# Setting up" in store/firestore/doc.go.
func (p plan) preparesTheFields(t *testing.T) {
	t.Helper()
	_, text, _ := strings.Cut(read(t, repository+"/store/firestore/doc.go"), "# Setting up")
	asked, group := map[string][]string{}, ""
	for _, line := range regexp.MustCompile(`(?m)^//\t(\w+) +(.+)$|collection group (\w+):$`).FindAllStringSubmatch(text, -1) {
		if line[3] != "" {
			group = line[3]
			continue
		}
		field, words := group+"."+line[1], line[2]
		asked[field] = []string{}
		for phrase, setting := range map[string]string{
			"of scope collection group":      "ASCENDING COLLECTION_GROUP",
			"of scope collection($|[^ ]| a)": "ASCENDING COLLECTION",
			"a TTL policy":                   "TTL",
		} {
			if regexp.MustCompile(phrase).MatchString(words) {
				asked[field] = append(asked[field], setting)
			}
		}
		slices.Sort(asked[field])
	}
	planned := map[string][]string{}
	for _, r := range p.resources {
		if r.Type != "google_firestore_field" || r.Values["field"] == "*" {
			continue
		}
		planned[r.Values["collection"].(string)+"."+r.Values["field"].(string)] = settings(r)
	}
	if d := cmp.Diff(asked, planned); d != "" || len(asked) != 6 {
		t.Errorf("Firestore is not set up as store/firestore/doc.go has it (-doc +terraform):\n%s", d)
	}
}

// settings are a field's indexes, and whether documents end by it.
func settings(field resource) []string {
	all := []string{}
	indexes, _ := in(field.Values, "index_config", 0, "indexes").([]any)
	for _, index := range indexes {
		all = append(all, in(index, "order").(string)+" "+in(index, "query_scope").(string))
	}
	if ttl, _ := field.Values["ttl_config"].([]any); len(ttl) == 1 {
		all = append(all, "TTL")
	}
	slices.Sort(all)
	return all
}

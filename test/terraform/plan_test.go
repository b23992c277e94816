package terraform

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"regent/httpapi/access/authz"
	"regent/leadership/wire"
)

// plan is what Terraform would create, as far as it is known beforehand.
type plan struct {
	resources []resource
	outputs   map[string]json.RawMessage
}

type resource struct {
	Address string
	Type    string
	Values  map[string]any
}

const project = "chosen-project-7"

// planExample plans the example in a project with a name of its own.
func planExample(t *testing.T, example string) plan {
	t.Helper()
	c := newCheckout(t, example)
	values := vars{
		"project_id":          project,
		"image":               "europe-west1-docker.pkg.dev/chosen-project-7/regent/regent:v1.2.3",
		"agents":              []string{"serviceAccount:agent@chosen-project-7.iam.gserviceaccount.com"},
		"notification_emails": []string{"oncall@example.com"},
	}
	switch example {
	case "multi-region":
		values["domain"] = "regent.example.com"
	case "regional-leaders":
		values["stopped_regions"] = []string{"eu"}
	}
	values["stopped"] = true
	return c.plan(t, example, values)
}

// plan plans the module, or an example.
func (c checkout) plan(t *testing.T, example string, values ...vars) plan {
	t.Helper()
	c.must(t, c.folder(example), "plan", "-input=false", "-out=plan", c.variables(t, values...))
	var shown struct {
		Planned struct {
			Outputs map[string]struct{ Value json.RawMessage }
			Root    struct {
				Resources []resource
				Children  []struct{ Resources []resource } `json:"child_modules"`
			} `json:"root_module"`
		} `json:"planned_values"`
	}
	require.NoError(t, json.Unmarshal([]byte(c.must(t, c.folder(example), "show", "-json", "plan")), &shown))
	p := plan{resources: shown.Planned.Root.Resources, outputs: map[string]json.RawMessage{}}
	for _, m := range shown.Planned.Root.Children {
		for _, r := range m.Resources {
			r.Address = strings.TrimPrefix(r.Address, "module.regent.")
			p.resources = append(p.resources, r)
		}
	}
	for name, o := range shown.Planned.Outputs {
		p.outputs[name] = o.Value
	}
	return p
}

func TestPlanOfEachExample(t *testing.T) {
	t.Parallel()
	for _, example := range examples {
		t.Run(example, func(t *testing.T) {
			t.Parallel()
			p := planExample(t, example)
			golden(t, "testdata/"+example+".txt", p.list())
			p.runsNothing(t)
			p.keepsToItsProject(t)
			p.hasLeastRights(t)
			p.hearsByTheRightsThatTheCodeNames(t)
			p.setsWhatTheBinaryReads(t)
			p.publishesThroughOneEndpoint(t)
			p.keepsNoMembers(t)
			p.mountsAnAccessFile(t)
			p.preparesTheStore(t)
			if example == "firestore" { // which changes no threshold
				golden(t, "testdata/alerts.json", p.alerts(t))
			}
			p.pointsToTheRunbook(t)
			p.showsEachMetric(t)
		})
	}
}

// runsNothing checks that an example passes on that it is to stop.
func (p plan) runsNothing(t *testing.T) {
	t.Helper()
	for _, r := range p.resources {
		if r.Type != "google_cloud_run_v2_service" || strings.HasPrefix(r.Address, `module.region["us"]`) {
			continue
		}
		if n := in(r.Values, "scaling", 0, "manual_instance_count"); n != 0.0 {
			t.Errorf("%s runs although it is stopped: %v instances", r.Address, n)
		}
	}
}

// publishesThroughOneEndpoint checks that services in several regions publish through one region's
// endpoint: Pub/Sub orders events only among what one region was sent.
func (p plan) publishesThroughOneEndpoint(t *testing.T) {
	t.Helper()
	var endpoints []string
	for _, r := range p.services() {
		endpoints = append(endpoints, p.environment(r)["REGENT_EVENTS_ENDPOINT"])
	}
	all := slices.Compact(slices.Sorted(slices.Values(endpoints)))
	regional := regexp.MustCompile(`^[a-z]+-[a-z]+[0-9]+-pubsub\.googleapis\.com:443$`)
	if len(endpoints) > 1 && (len(all) != 1 || !regional.MatchString(all[0])) || len(endpoints) == 1 && all[0] != "" {
		t.Errorf("services of %d regions publish through %q", len(endpoints), endpoints)
	}
}

// telling are the attributes that identify resources.
var telling = []string{
	"location_id", "config", "role", "permissions", "collection", "field", "retention", "retention_duration", "ingress", "display_name",
}

// list is a line for each resource: its address, and what tells it apart.
func (p plan) list() string {
	var lines []string
	for _, r := range p.resources {
		var line strings.Builder
		line.WriteString(r.Address)
		for _, attribute := range telling {
			if v, ok := r.Values[attribute]; ok && v != nil {
				fmt.Fprintf(&line, "  %s=%v", attribute, v)
			}
		}
		lines = append(lines, line.String()+"\n")
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func (p plan) keepsToItsProject(t *testing.T) {
	t.Helper()
	for _, r := range p.resources {
		if in, ok := r.Values["project"]; ok && in != project {
			t.Errorf("%s is in project %v", r.Address, in)
		}
		if _, ok := r.Values["project"]; !ok && r.Type != "google_secret_manager_secret_version" {
			t.Errorf("%s does not name its project, so it depends on the caller of Terraform", r.Address)
		}
	}
}

var tooMuch = regexp.MustCompile(`^roles/(owner|editor|viewer|.*[aA]dmin|.*\.editor|iam\..*|.*[oO]wner|datastore\.user|spanner\.databaseUser)$`)

// dangerous permissions can lose leases, or give rights away.
var dangerous = regexp.MustCompile(`^(datastore|spanner)\..*([dD]elete|drop|Ddl)|^pubsub\.topics\.|[iI]amPolicy|[aA]ctAs`)

func (p plan) hasLeastRights(t *testing.T) {
	t.Helper()
	bindings := 0
	for _, r := range p.resources {
		if strings.Contains(r.Type, "key") {
			t.Errorf("%s: no identity has a key", r.Address)
		}
		if strings.HasSuffix(r.Type, "_iam_binding") || strings.HasSuffix(r.Type, "_iam_policy") {
			t.Errorf("%s takes away what others were given", r.Address)
		}
		if role, _ := r.Values["role"].(string); tooMuch.MatchString(role) {
			t.Errorf("%s gives %s, which is more than anything here needs", r.Address, role)
		}
		if member, _ := r.Values["member"].(string); strings.HasPrefix(member, "all") {
			t.Errorf("%s lets in %s", r.Address, member)
		}
		if strings.HasSuffix(r.Type, "_iam_member") {
			bindings++
		}
		for _, permission := range list(r.Values["permissions"]) {
			if dangerous.MatchString(permission) {
				t.Errorf("%s allows %s, which nothing here needs", r.Address, permission)
			}
		}
	}
	if bindings < 9 {
		t.Errorf("%d bindings were looked at only", bindings)
	}
}

// hearsByTheRightsThatTheCodeNames compares with "# Rights" in leadership/instance/pubsub/doc.go.
func (p plan) hearsByTheRightsThatTheCodeNames(t *testing.T) {
	t.Helper()
	_, text, _ := strings.Cut(read(t, repository+"/leadership/instance/pubsub/doc.go"), "# Rights")
	text = strings.Join(strings.Fields(strings.ReplaceAll(text, "//", " ")), " ")
	words := regexp.MustCompile(`pubsub\.subscriptions\.([a-z, ]+) in the project`).FindStringSubmatch(text)
	onTopic := strings.Contains(text, "pubsub.topics.publish") && strings.Contains(text, "pubsub.topics.attachSubscription on the topic")
	if words == nil || !onTopic {
		t.Fatalf("leadership/instance/pubsub/doc.go says something else by now, and Terraform has to follow: %s", text)
	}
	var want []string
	for _, verb := range regexp.MustCompile(`, | and `).Split(words[1], -1) {
		want = append(want, "pubsub.subscriptions."+verb)
	}
	slices.Sort(want)
	got := list(p.one(t, "google_project_iam_custom_role.listener").Values["permissions"])
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the listener's permissions are not what hearing takes (-code +terraform):\n%s", d)
	}
	for name, topic := range map[string]string{"server": "regent", "members": "regent-members"} {
		for _, role := range []string{"roles/pubsub.publisher", "roles/pubsub.subscriber"} {
			binding := p.one(t, fmt.Sprintf("google_pubsub_topic_iam_member.%s[%q]", name, role))
			if binding.Values["topic"] != topic || binding.Values["role"] != role {
				t.Errorf("%s gives %v for topic %v", binding.Address, binding.Values["role"], binding.Values["topic"])
			}
		}
	}
}

// keepsNoMembers checks that the topic of members keeps no message that was delivered, and that
// each service uses it, and not the one of events.
func (p plan) keepsNoMembers(t *testing.T) {
	t.Helper()
	topic := p.one(t, "google_pubsub_topic.members[0]")
	if kept := topic.Values["message_retention_duration"]; kept != nil {
		t.Errorf("the topic of members keeps messages for %v", kept)
	}
	for _, s := range p.services() {
		env := p.environment(s)
		if env["REGENT_MEMBERS"] != "projects/"+project+"/topics/regent-members" || env["REGENT_EVENTS"] == env["REGENT_MEMBERS"] {
			t.Errorf("%s exchanges members over %q, and events over %q", s.Address, env["REGENT_MEMBERS"], env["REGENT_EVENTS"])
		}
	}
}

// mountsAnAccessFile checks that the code itself can read the access file.
func (p plan) mountsAnAccessFile(t *testing.T) {
	t.Helper()
	access := p.access(t)
	if _, err := authz.ParseAccess([]byte(access), authz.Admitted); err != nil {
		t.Errorf("Regent refuses the access file: %v\n%s", err, access)
	}
	if scheduler := "regent-scheduler@" + project + ".iam.gserviceaccount.com"; !strings.Contains(access, scheduler) {
		t.Errorf("the access file does not know %s:\n%s", scheduler, access)
	}
	text := read(t, repository+"/terraform/variables.tf")
	_, rule, _ := strings.Cut(text, "yamldecode(var.access).grants : g.roles")
	for _, role := range wire.Roles() {
		if !strings.Contains(rule[:200], fmt.Sprintf("%q", role)) {
			t.Errorf("the variable access does not know the role %s", role)
		}
	}
}

func (p plan) access(t *testing.T) string {
	t.Helper()
	text, _ := p.one(t, "google_secret_manager_secret_version.access").Values["secret_data"].(string)
	return text
}

// one returns the resource with the address.
func (p plan) one(t *testing.T, address string) resource {
	t.Helper()
	i := slices.IndexFunc(p.resources, func(r resource) bool { return r.Address == address })
	if i < 0 {
		t.Fatalf("no %s is planned", address)
	}
	return p.resources[i]
}

// services are the Cloud Run services of the example's main module.
func (p plan) services() []resource { return p.main("google_cloud_run_v2_service") }

// main are the resources of a type, without those of modules beside the main one.
func (p plan) main(kind string) []resource {
	return slices.DeleteFunc(slices.Clone(p.resources), func(r resource) bool { return r.Type != kind || strings.HasPrefix(r.Address, "module.") })
}

// in returns the value at the path, of names and indexes, below v.
func in(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			object, _ := v.(map[string]any)
			v = object[step]
		case int:
			if all, _ := v.([]any); step < len(all) {
				v = all[step]
			} else {
				v = nil
			}
		}
	}
	return v
}

// list is a list of texts.
func list(v any) []string {
	var texts []string
	all, _ := v.([]any)
	for _, one := range all {
		texts = append(texts, fmt.Sprint(one))
	}
	return texts
}

// golden compares with the file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	if d := cmp.Diff(read(t, file), got); d != "" {
		t.Errorf("%s differs (-want +got); if that is meant, run: go test -update\n%s", file, d)
	}
}

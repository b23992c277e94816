package terraform

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/leadership"
)

// right are variables with which the module plans.
var right = map[string]any{
	"project_id":          "my-project",
	"regions":             []string{"europe-west1"},
	"image":               "europe-west1-docker.pkg.dev/my-project/regent/regent:v1.2.3",
	"store":               "firestore",
	"invokers":            []string{"serviceAccount:agent@my-project.iam.gserviceaccount.com"},
	"access":              "grants: [{principals: [agent@my-project.iam.gserviceaccount.com], roles: [candidate], elections: [reports]}]",
	"notification_emails": []string{"oncall@example.com"},
}

type attack struct {
	refuses string // the variable
	value   any
	says    string // some words of the advice
	also    vars   // other variables that make the value wrong
}

type vars = map[string]any

const goodGrant = "{principals: [a@example.com], roles: [admin], elections: ['*']}"

func grants(text string) string { return "grants: [" + text + "]" }

var hostile = []attack{
	{refuses: "project_id", value: "", says: "such as my-project-123"},
	{refuses: "project_id", value: "123456789012", says: "not its name or number"},
	{refuses: "name", value: "Regent", says: "try regent"},
	{refuses: "name", value: "rt", says: "3 to 20"},
	{refuses: "name", value: "rgt", says: "4 characters or more", also: vars{"store": "spanner"}},
	{refuses: "regions", value: []string{}, says: "name at least one"},
	{refuses: "regions", value: []string{"europe-west1-b"}, says: "not zones"},
	{refuses: "regions", value: []string{"europe-west1", "europe-west1"}, says: "remove the second"},
	{refuses: "image", value: "regent", says: "must be pinned"},
	{refuses: "image", value: "regent:latest", says: "not with :latest"},
	{refuses: "peers", value: vars{"e u": vars{"url": "https://regent.example.com"}}, says: "such as eu"},
	{refuses: "peers", value: vars{"eu": vars{"url": "http://regent.example.com"}}, says: "not https://HOST"},
	{refuses: "labels", value: vars{"Team": "leads"}, says: "a key has"},
	{refuses: "store", value: "", says: "choose one of them"},
	{refuses: "store", value: "file:/var/leases", says: "which Cloud Run does not have"},
	{refuses: "firestore_database", value: "db", says: "try regent"},
	{refuses: "firestore_location", value: "EU", says: "such as europe-west1"},
	{refuses: "spanner_database", value: "Regent", says: "try regent"},
	{refuses: "spanner_config", value: "projects/p/instanceConfigs/eur6", says: "gcloud spanner instance-configs list"},
	{refuses: "spanner_edition", value: "STANDARD", says: "must be ENTERPRISE_PLUS", also: vars{"spanner_config": "eur6"}},
	{refuses: "spanner_processing_units", value: 150, says: "multiple of 100"},
	{refuses: "spanner_processing_units", value: 1100, says: "of 1000 from there on"},
	{refuses: "spanner_version_retention", value: "8d", says: "from 1h to 168h"},
	{refuses: "spanner_version_retention", value: "169h", says: "from 1h to 168h"},
	{refuses: "spanner_version_retention", value: "0h", says: "from 1h to 168h"},
	{refuses: "backup_retention_days", value: 99, says: "from 1 to 98"},
	{refuses: "history_hours", value: 0, says: "1 or more"},
	{refuses: "topic_retention_hours", value: -1, says: "0 keeps none"},
	{refuses: "topic_retention_hours", value: 745, says: "31 days"},
	{refuses: "topic_storage_regions", value: []string{"eu"}, says: "such as europe-west1"},
	{refuses: "min_instances", value: 0, says: "1 or more"},
	{refuses: "max_instances", value: 1001, says: "from 1 to 1000"},
	{refuses: "max_instances", value: 2, says: "raise the one or lower the other", also: vars{"min_instances": 3}},
	{refuses: "concurrency", value: 1, says: "from 2 to 1000"},
	{refuses: "cpu", value: 0.5, says: "1, 2, 4 or 8"},
	{refuses: "memory_mib", value: 128, says: "from 512"},
	{refuses: "memory_mib", value: 2047, says: "raise it, or lower cpu", also: vars{"cpu": 4}},
	{refuses: "memory_mib", value: 4095, says: "raise it, or lower cpu", also: vars{"cpu": 8}},
	{refuses: "memory_mib", value: 4097, says: "lower it, or raise cpu", also: vars{"cpu": 1}},
	{refuses: "memory_mib", value: 8193, says: "lower it, or raise cpu", also: vars{"cpu": 2}},
	{refuses: "memory_mib", value: 16385, says: "lower it, or raise cpu", also: vars{"cpu": 4}},
	{refuses: "request_timeout_seconds", value: 3601, says: "from 90 to 3600"},
	{refuses: "request_timeout_seconds", value: int(leadership.MaxWait.Seconds()), says: "calls that wait for a minute"},
	{refuses: "stream_limit_seconds", value: 270.5, says: "whole number"},
	{refuses: "stream_limit_seconds", value: 271, says: "lower it, or raise the timeout", also: vars{"request_timeout_seconds": 300}},
	{refuses: "cache_expiry_seconds", value: 11, says: "from 1 to 10"},
	{refuses: "ingress", value: "all", says: "choose one of them"},
	{refuses: "ingress", value: "INGRESS_TRAFFIC_INTERNAL_ONLY", says: "or give no domain", also: vars{"domain": "regent.example.com"}},
	{refuses: "domain", value: "https://regent.example.com", says: "without https://"},
	{refuses: "iap_domain", value: "https://regent-ui.example.com", says: "without https://", also: vars{"domain": "regent.example.com"}},
	{refuses: "iap_domain", value: "regent-ui.example.com", says: "give domain as well", also: vars{}},
	{refuses: "iap_domain", value: "regent.example.com", says: "another one", also: vars{"domain": "regent.example.com"}},
	{refuses: "iap_audiences", value: []string{"https://regent-ui.example.com"}, says: "/projects/NUMBER/"},
	{refuses: "iap_audiences", value: []string{"/projects/my-project/global/backendServices/7"}, says: "the number of the project"},
	{refuses: "invokers", value: []string{}, says: "name at least one"},
	{refuses: "invokers", value: []string{"allUsers"}, says: "name service accounts, users or groups"},
	{refuses: "invokers", value: []string{"agent@example.com"}, says: "write user:E-MAIL"},
	{refuses: "invokers", value: []string{"user:a@example.com", "user:a@example.com"}, says: "remove the second"},
	{refuses: "access", value: "", says: "give the text of an access file"},
	{refuses: "access", value: grants("{principals: [a@example.com], roles: [owner], elections: ['*']}"), says: "the roles are candidate"},
	{refuses: "access", value: grants("{roles: [admin], elections: ['*']}"), says: "each has principals and roles"},
	{refuses: "access", value: grants(goodGrant) + "\nlimit: [{principals: [a@example.com], reads: 5}]", says: "optionally limits, and nothing else"},
	{refuses: "access", value: grants(goodGrant) + "\nlimits: [{principals: [a@example.com], writes: 5}]", says: "some of renewals"},
	{refuses: "access", value: grants("{principals: ['*'], roles: [candidate], elections: ['*']}"), says: "every Google account", also: vars{"auth": "oidc", "invokers": []string{}}},
	{refuses: "auth", value: "none", says: "choose platform", also: vars{}}, // others look at it
	{refuses: "oidc_issuer", value: "http://issuer.example.com", says: "the URL of one issuer", also: vars{"auth": "oidc", "invokers": []string{}}},
	{refuses: "oidc_issuer", value: "https://issuer.example.com", says: "is for auth oidc"},
	{refuses: "invokers", value: []string{"user:a@example.com"}, says: "has no effect with auth oidc", also: vars{"auth": "oidc"}},
	{refuses: "access", value: grants("{principals: [a@example.com], roles: [admin], elections: ['*']}") + "#" + strings.Repeat("x", 60000), says: "prefixes of elections"},
	{refuses: "audience", value: "", says: "omit it"},
	{refuses: "audience", value: "one,two", says: "without spaces and commas"},
	{refuses: "events_region", value: "europe-west1-pubsub.googleapis.com:443", says: "a region such as europe-west1", also: vars{"topic_retention_hours": 0}},
	{refuses: "events_region", value: "us-east1", says: "may keep messages", also: vars{"topic_retention_hours": 0}},
	{refuses: "tick_schedule", value: "every minute", says: "* * * * * is each minute"},
	{refuses: "scheduler_region", value: "EU", says: "or omit it"},
	{refuses: "notification_emails", value: []string{"oncall"}, says: "oncall@example.com"},
	{refuses: "notification_channels", value: []string{"pager"}, says: "projects/PROJECT/notificationChannels/ID"},
	{refuses: "notification_channels", value: []string{}, says: "give at least one of either", also: vars{"notification_emails": []string{}}},
	{refuses: "alert_thresholds", value: vars{"flapping_elections": -1}, says: "give 0 or more"},
	{refuses: "alert_thresholds", value: vars{"error_ratio": 1}, says: "write 1 % as 0.01"},
	{refuses: "alert_thresholds", value: vars{"participation": 50}, says: "write 50 % as 0.5"},
	{refuses: "alert_thresholds", value: vars{"elections_per_hour": 0}, says: "from 1 to 6"},
	{refuses: "alert_thresholds", value: vars{"readonly_seconds": 30}, says: "multiples of 60"},
	{refuses: "alert_thresholds", value: vars{"transition_seconds": 0.5}, says: "each ordinary change of leader would fire"},
	{refuses: "alert_thresholds", value: vars{"silence_seconds": 90}, says: "300 is five minutes"},
	{refuses: "metrics_elections", value: []string{"deploy.*.eu"}, says: "such as deploy.*"},
	{refuses: "statement_keys", value: []string{"projects/p/locations/l/keyRings/r/cryptoKeys/k"}, says: "cryptoKeyVersions/N"},
	{refuses: "metric_names", value: "statsd", says: "choose otlp unless"},
	{refuses: "trace_ratio", value: 5, says: "write 1 % as 0.01"},
	{refuses: "uptime_check", value: true, says: "or omit the check", also: vars{"ingress": "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER"}},
	{refuses: "runbook_url", value: "https://example.com/runbook#alerts", says: "without a #section"},
}

func TestInvalidVariablesAreRefusedWithAdvice(t *testing.T) {
	t.Parallel()
	c := onlyVariables(t)
	for i, round := range rounds(hostile) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			said := c.refusals(t, round)
			for _, a := range round {
				if !slices.ContainsFunc(said, a.answeredBy) {
					t.Errorf("%s = %.60q: terraform says %q, want a sentence that begins with %s and has %q", a.refuses, fmt.Sprint(a.value), said, a.refuses, a.says)
				}
			}
		})
	}
}

func (a attack) answeredBy(sentence string) bool {
	return strings.HasPrefix(sentence, a.refuses) && strings.Contains(sentence, a.says)
}

func TestValidVariablesAreAccepted(t *testing.T) {
	t.Parallel()
	c := onlyVariables(t)
	for i, round := range []vars{
		{},
		{"firestore_database": "(default)", "firestore_location": "nam5", "topic_retention_hours": 0, "max_instances": 2, "labels": vars{"team": "leads", "empty": ""}},
		{"store": "spanner", "spanner_config": "nam-eur-asia1", "spanner_edition": "ENTERPRISE_PLUS", "spanner_processing_units": 3000, "domain": "regent.example.com"},
		{"stream_limit_seconds": 270, "request_timeout_seconds": 300, "notification_emails": []string{}, "notification_channels": []string{"projects/p/notificationChannels/1"}},
		{"invokers": []string{
			"group:agents@example.com", "domain:example.com", "principalSet://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/*",
			"serviceAccount:my-project.svc.id.goog[leads/agent]@example.com",
		}},
		{"auth": "oidc", "oidc_issuer": "https://issuer.example.com/agents", "invokers": []string{}, "access": grants("{principals: ['*'], roles: [observer], elections: ['*']}")},
		{"access": grants("{principals: [a@example.com], roles: [candidate], elections: ['*'], maxLeaseDuration: 5m}") +
			"\nlimits: [{principals: ['*'], renewals: 7}, {principals: [a@example.com], campaigns: 1, reads: 2, waiters: 3, watchers: 4, elections: 5}]"},
		{"image": "europe-docker.pkg.dev/p/r/regent@sha256:" + strings.Repeat("0", 64), "tick_schedule": "*/5 8-18 * * MON-FRI", "uptime_check": true},
		{"regions": []string{"europe-west1", "europe-west4"}, "events_region": "europe-west4", "domain": "regent.example.com"},
		{"domain": "regent.example.com", "iap_domain": "regent-ui.example.com", "iap_audiences": []string{"/projects/1/global/backendServices/7"}, "mcp": true, "kubernetes": true, "ui": false},
		{"metrics_elections": []string{"nightly", "deploy.*", "*"}},
		{"cpu": 4, "memory_mib": 2048, "name": "rgt"},
		{"cpu": 8, "memory_mib": 32768, "store": "spanner", "name": "rgnt", "spanner_version_retention": "168h"},
		{"statement_keys": []string{"projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1"}},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			c.must(t, c.folder(""), "plan", "-input=false", "-lock=false", c.variables(t, right, round))
		})
	}
}

// rounds groups attacks on different variables, because all are answered at once. One that needs
// other variables is alone: validations that refer to a refused variable are not run.
func rounds(all []attack) [][]attack {
	var together [][]attack
	var alone [][]attack
	next := map[string]int{}
	for _, a := range all {
		if a.also != nil || looksElsewhere[a.refuses] {
			alone = append(alone, []attack{a})
			continue
		}
		n := next[a.refuses]
		next[a.refuses]++
		if n == len(together) {
			together = append(together, nil)
		}
		together[n] = append(together[n], a)
	}
	return append(together, alone...)
}

// looksElsewhere are variables whose validation refers to others.
var looksElsewhere = map[string]bool{
	"name": true, "spanner_edition": true, "max_instances": true, "memory_mib": true, "stream_limit_seconds": true, "ingress": true,
	"notification_channels": true, "uptime_check": true,
}

// onlyVariables returns a copy of the module with nothing but its variables, for which Terraform
// needs no provider and little time.
func onlyVariables(t *testing.T) checkout {
	t.Helper()
	needTerraform(t)
	c := checkout{root: t.TempDir()}
	require.NoError(t, os.Mkdir(c.folder(""), 0o700))
	write(t, filepath.Join(c.folder(""), "variables.tf"), read(t, repository+"/terraform/variables.tf"))
	return c
}

// refusals are what Terraform says to the attacks.
func (c checkout) refusals(t *testing.T, round []attack) []string {
	t.Helper()
	values := maps.Clone(right)
	for _, a := range round {
		values[a.refuses] = a.value
		maps.Copy(values, a.also)
	}
	out, err := c.run(t.Context(), c.folder(""), "plan", "-json", "-input=false", "-lock=false", c.variables(t, values))
	if err == nil {
		t.Fatalf("terraform plans as if nothing were wrong:\n%s", out)
	}
	var said []string
	for line := range strings.Lines(out) {
		var message struct{ Diagnostic struct{ Detail string } }
		if err := json.Unmarshal([]byte(line), &message); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if d := message.Diagnostic.Detail; d != "" {
			said = append(said, d)
		}
	}
	return said
}

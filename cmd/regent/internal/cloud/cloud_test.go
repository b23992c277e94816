package cloud_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/cmd/regent/internal/cloud"
)

// answers has the replies of a project's APIs, or of a service: a status and a body for each path.
type answers map[string]answer

type answer struct {
	status int
	body   string
}

// serve serves the answers, and 404 for other paths, and fails the test at calls that change
// something.
func (a answers) serve(t *testing.T) *cloud.Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && !strings.HasSuffix(r.URL.Path, ":testIamPermissions") {
			t.Errorf("%s %s: a doctor only reads", r.Method, r.URL.Path)
		}
		said, known := a[r.URL.Path]
		if !known {
			said = answer{404, `{"error":{"code":404,"message":"there is no ` + r.URL.Path + `","status":"NOT_FOUND"}}`}
		}
		switch {
		case said.status == http.StatusFound:
			w.Header().Set("Location", "https://accounts.google.com/")
		case strings.Contains(said.body, `"code":"`):
			w.Header().Set("Content-Type", "application/problem+json")
		}
		w.WriteHeader(said.status)
		fmt.Fprint(w, said.body)
	}))
	t.Cleanup(s.Close)
	return &cloud.Client{HTTP: s.Client(), Base: s.URL}
}

const forbidden = `{"error":{"code":403,"message":"Missing or insufficient\n permissions.","status":"PERMISSION_DENIED"}}`

// wants compares a finding's verdict, and looks for a text in it.
func wants(t *testing.T, got cloud.Finding, verdict cloud.Verdict, text string) {
	t.Helper()
	if got.Verdict != verdict || !strings.Contains(got.Text, text) {
		t.Errorf("%s: %s, %q\nwant %s, with %q", got.Check, got.Verdict, got.Text, verdict, text)
	}
}

func index(scope, order, state string) string {
	return fmt.Sprintf(`{"queryScope":%q,"fields":[{"fieldPath":"f","order":%q}],"state":%q}`, scope, order, state)
}

func fieldOf(ttl string, indexes ...string) answer {
	if ttl != "" {
		ttl = `,"ttlConfig":{"state":"` + ttl + `"}`
	}
	return answer{200, `{"indexConfig":{"indexes":[` + strings.Join(indexes, ",") + `]}` + ttl + `}`}
}

var (
	inCollection = index("COLLECTION", "ASCENDING", "READY")
	inGroup      = index("COLLECTION_GROUP", "ASCENDING", "READY")
	downwards    = index("COLLECTION", "DESCENDING", "READY")
	building     = index("COLLECTION_GROUP", "ASCENDING", "CREATING")
)

const fieldsPath = "/v1/projects/p/databases/(default)/collectionGroups/"

// sound is a database as Terraform sets it up.
func sound() answers {
	return answers{
		fieldsPath + "events/fields/unannounced":    fieldOf("", inCollection, inGroup),
		fieldsPath + "events/fields/requestedAt":    fieldOf("", inGroup),
		fieldsPath + "events/fields/deleteAfter":    fieldOf("ACTIVE"),
		fieldsPath + "segments/fields/deleteAfter":  fieldOf("ACTIVE"),
		fieldsPath + "leadership/fields/renewalDue": fieldOf(""),
		fieldsPath + "leadership/fields/leaderId":   fieldOf("", inCollection, downwards),
		fieldsPath + "leadership/fields/retireAt":   fieldOf("", inCollection),
	}
}

func TestEachFieldOfFirestoreIsJudged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		field   string
		is      answer
		verdict cloud.Verdict
		text    string
	}{
		"as it should be":            {"events/fields/unannounced", fieldOf("", inCollection, inGroup), cloud.OK, "COLLECTION and COLLECTION_GROUP"},
		"automatic indexes":          {"events/fields/unannounced", fieldOf("", inCollection, downwards), cloud.NotOK, "no ascending index of scope COLLECTION_GROUP"},
		"the other direction":        {"events/fields/requestedAt", fieldOf("", index("COLLECTION_GROUP", "DESCENDING", "READY")), cloud.NotOK, "no ascending index"},
		"still building":             {"events/fields/requestedAt", fieldOf("", building), cloud.NotOK, "is CREATING: wait"},
		"no TTL policy":              {"events/fields/deleteAfter", fieldOf(""), cloud.NotOK, "no TTL policy"},
		"a TTL policy in the making": {"events/fields/deleteAfter", fieldOf("CREATING"), cloud.NotOK, "TTL policy is CREATING"},
		"deleteAfter indexed":        {"events/fields/deleteAfter", fieldOf("ACTIVE", inCollection), cloud.NotOK, "exempt it"},
		"renewalDue indexed":         {"leadership/fields/renewalDue", fieldOf("", inCollection, downwards), cloud.NotOK, "it has 2 indexes that nothing uses"},
		"no right":                   {"leadership/fields/renewalDue", answer{403, forbidden}, cloud.Unchecked, "datastore.indexes.get is missing; give this principal roles/datastore.viewer, or run this as one that has it: 403: Missing or insufficient permissions."},
		"no credentials":             {"leadership/fields/renewalDue", answer{401, `{}`}, cloud.Unchecked, "gcloud auth application-default login"},
		"no such database":           {"leadership/fields/renewalDue", answer{404, `{"error":{"message":"The database (default) does not exist"}}`}, cloud.NotOK, "The database (default) does not exist"},
		"out of order":               {"leadership/fields/renewalDue", answer{503, "<html>"}, cloud.Unchecked, "503: no reason given"},
		"no answer of the API":       {"leadership/fields/renewalDue", answer{200, "<html>"}, cloud.Unchecked, "is not understood"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := sound()
			is[fieldsPath+c.field] = c.is
			for _, f := range is.serve(t).Firestore(t.Context(), "p", "(default)") {
				if f.Check == "field "+strings.Replace(c.field, "/fields/", ".", 1) {
					wants(t, f, c.verdict, c.text)
				} else {
					wants(t, f, cloud.OK, "")
				}
			}
		})
	}
}

// The documentation of the store lists the fields that it needs. The doctor checks these, and that
// no field that only grows is indexed.
func TestFieldsAreThoseThatTheStoreAsksFor(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../../../store/firestore/doc.go")
	require.NoError(t, err)
	_, text, _ := strings.Cut(string(doc), "# Setting up")
	var asked []string
	for _, line := range regexp.MustCompile(`(?m)^//\t(\w+) +(.+)$`).FindAllStringSubmatch(text, -1) {
		name, words := line[1], line[2]
		needs := []string{}
		if regexp.MustCompile(`of scope collection( and|$)`).MatchString(words) {
			needs = append(needs, "COLLECTION")
		}
		if strings.Contains(words, "of scope collection group") {
			needs = append(needs, "COLLECTION_GROUP")
		}
		said := "no index"
		if len(needs) > 0 {
			said = "ascending, of scope " + strings.Join(needs, " and ")
		}
		if strings.Contains(words, "a TTL policy") {
			said += ", and a TTL policy"
		}
		asked = append(asked, name+": "+said)
	}
	var checked []string
	for _, f := range sound().serve(t).Firestore(t.Context(), "p", "(default)") {
		if name := f.Check[strings.IndexByte(f.Check, '.')+1:]; name != "renewalDue" {
			checked = append(checked, name+": "+f.Text)
		}
	}
	slices.Sort(asked)
	slices.Sort(checked)
	if !slices.Equal(asked, checked) || len(asked) == 0 {
		t.Errorf("the store asks for %q, and %q is checked", asked, checked)
	}
}

func TestOrderAcrossRegionsIsJudged(t *testing.T) {
	t.Parallel()
	const path = "/v1/projects/p/topics/t"
	regions := func(names string) answer {
		return answer{200, `{"name":"projects/p/topics/t","messageStoragePolicy":{"allowedPersistenceRegions":[` + names + `]}}`}
	}
	both := regions(`"europe-west1","us-east1"`)
	for name, c := range map[string]struct {
		endpoint string
		is       answer
		verdict  cloud.Verdict
		text     string
	}{
		"one region":                 {"", regions(`"europe-west1"`), cloud.OK, "only in europe-west1"},
		"two regions":                {"", both, cloud.NotOK, "give all instances --events-endpoint europe-west1-pubsub.googleapis.com:443"},
		"two regions, one endpoint":  {"us-east1-pubsub.googleapis.com:443", both, cloud.OK, "publish in us-east1"},
		"a locational endpoint":      {"pubsub.us-east1.rep.googleapis.com:443", both, cloud.OK, "publish in us-east1"},
		"an endpoint elsewhere":      {"asia-east1-pubsub.googleapis.com", both, cloud.NotOK, "choose an endpoint of one of these"},
		"an endpoint without region": {"pubsub.googleapis.com:443", both, cloud.Unchecked, "names no region"},
		"any region":                 {"", answer{200, "{}"}, cloud.Unchecked, "any region"},
		"no right":                   {"", answer{403, forbidden}, cloud.Unchecked, "pubsub.topics.get is missing; give this principal roles/pubsub.viewer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wants(t, answers{path: c.is}.serve(t).Topic(t.Context(), "projects/p/topics/t", c.endpoint), c.verdict, c.text)
		})
	}
}

const (
	service     = "projects/p/locations/l/services/regent"
	servicePath = "/v2/" + service
)

func TestStrangersAmongTheInvokersAreFound(t *testing.T) {
	t.Parallel()
	bound := func(member string) answer {
		return answer{200, `{"bindings":[{"role":"roles/run.viewer","members":["user:a@example.com"]},{"role":"roles/run.invoker","members":["serviceAccount:b@example.com",` + fmt.Sprintf("%q", member) + `]}]}`}
	}
	admitted, checked := bound("user:c@example.com"), answer{200, `{"uri":""}`}
	for name, c := range map[string]struct {
		service, policy answer
		verified        bool
		want            []cloud.Verdict
		text            string
	}{
		"known callers":                {checked, admitted, false, []cloud.Verdict{cloud.OK, cloud.OK}, "3 members"},
		"everyone":                     {checked, bound("allUsers"), false, []cloud.Verdict{cloud.OK, cloud.NotOK}, "allUsers has the role roles/run.invoker"},
		"everyone, verified by Regent": {checked, bound("allUsers"), true, []cloud.Verdict{cloud.OK, cloud.OK}, ""},
		"IAM switched off":             {answer{200, `{"invokerIamDisabled":true}`}, admitted, false, []cloud.Verdict{cloud.NotOK, cloud.OK}, "IAM does not check its callers"},
		"throttled between requests":   {answer{200, `{"template":{"containers":[{},{"resources":{"cpuIdle":true}}]}}`}, admitted, false, []cloud.Verdict{cloud.OK, cloud.NotOK, cloud.OK}, "no-cpu-throttling"},
		"IAM off, verified by Regent":  {answer{200, `{"invokerIamDisabled":true}`}, admitted, true, []cloud.Verdict{cloud.OK, cloud.OK}, ""},
		"no right to read the policy":  {checked, answer{403, forbidden}, false, []cloud.Verdict{cloud.OK, cloud.Unchecked}, "run.services.getIamPolicy is missing"},
		"no such service":              {answer{404, "{}"}, answer{404, "{}"}, false, []cloud.Verdict{cloud.NotOK, cloud.NotOK}, "does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := answers{servicePath: c.service, servicePath + ":getIamPolicy": c.policy}.serve(t).Service(t.Context(), service, c.verified)
			var got []cloud.Verdict
			var text strings.Builder
			for _, f := range found {
				got = append(got, f.Verdict)
				text.WriteString(f.Text + "\n")
			}
			if !slices.Equal(got, c.want) || !strings.Contains(text.String(), c.text) {
				t.Errorf("%v, want %v with %q:\n%s", got, c.want, c.text, text.String())
			}
		})
	}
}

func TestServiceIsCalledWithoutATokenAtItsOwnAddress(t *testing.T) {
	t.Parallel()
	open := answers{"/v1/elections": {200, `{"elections":[]}`}}.serve(t)
	is := answers{servicePath: {200, `{"uri":"` + open.Base + `"}`}, servicePath + ":getIamPolicy": {200, "{}"}}
	found := is.serve(t).Service(t.Context(), service, false)
	wants(t, found[len(found)-1], cloud.NotOK, "strangers may call it")
}

func TestACallWithoutATokenMustBeRefused(t *testing.T) {
	t.Parallel()
	const page, problem = "<html>", `{"status":401,"code":"UNAUTHENTICATED"}`
	for name, c := range map[string]struct {
		is       answer
		verified bool
		verdict  cloud.Verdict
		text     string
	}{
		"by IAM":                           {answer{403, page}, false, cloud.OK, "before it reaches Regent"},
		"by Regent, which verifies":        {answer{401, problem}, true, cloud.OK, "Regent refuses it"},
		"by Regent, which relies on IAM":   {answer{401, problem}, false, cloud.NotOK, "it verifies no tokens"},
		"verified, and not ready":          {answer{503, strings.Replace(problem, "UNAUTHENTICATED", "DRAINING", 1)}, true, cloud.Unchecked, "check the address"},
		"not at all":                       {answer{200, `{"elections":[]}`}, false, cloud.NotOK, "strangers may call it"},
		"not shown, for the ingress":       {answer{404, page}, false, cloud.Unchecked, "ingress"},
		"not shown, for a page to sign in": {answer{302, ""}, false, cloud.Unchecked, "answers 302"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := answers{"/v1/elections": c.is}.serve(t)
			wants(t, client.Uninvited(t.Context(), client.Base+"/", c.verified), c.verdict, c.text)
		})
	}
	wants(t, (&cloud.Client{}).Uninvited(t.Context(), "http://127.0.0.1:1", false), cloud.Unchecked, "does not answer")
}

func TestWithoutCredentialsNothingIsChecked(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", t.TempDir()+"/none.json")
	for _, f := range (&cloud.Client{Base: "http://127.0.0.1:1"}).Firestore(t.Context(), "p", "d") {
		wants(t, f, cloud.Unchecked, "there are no credentials")
	}
}

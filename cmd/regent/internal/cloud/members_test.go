package cloud_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"regent/cmd/regent/internal/cloud"
)

func TestTheTopicOfMembersIsJudged(t *testing.T) {
	t.Parallel()
	const topic, rights, subscriptions = "/v1/projects/p/topics/m", "/v1/projects/p/topics/m:testIamPermissions", "/v1/projects/p/subscriptions"
	all := answer{200, `{"permissions":["pubsub.topics.publish","pubsub.topics.attachSubscription"]}`}
	subscribed := func(policy string) answer {
		return answer{200, `{"subscriptions":[
			{"name":"projects/p/subscriptions/a","topic":"projects/p/topics/m","expirationPolicy":{"ttl":"86400s"}},
			{"name":"projects/p/subscriptions/b","topic":"projects/p/topics/m"` + policy + `},
			{"name":"projects/p/subscriptions/c","topic":"projects/p/topics/events","expirationPolicy":{}}]}`}
	}
	sound := map[string]answer{topic: {200, `{"name":"projects/p/topics/m"}`}, rights: all, subscriptions: subscribed(`,"expirationPolicy":{"ttl":"2678400s"}`)}
	for name, c := range map[string]struct {
		path    string
		is      answer
		verdict []cloud.Verdict
		text    string // of the first that is not ok
	}{
		"as it should be":            {topic, sound[topic], []cloud.Verdict{cloud.OK, cloud.OK, cloud.OK}, ""},
		"no right to publish":        {rights, answer{200, `{"permissions":["pubsub.topics.attachSubscription"]}`}, []cloud.Verdict{cloud.NotOK, cloud.OK, cloud.OK}, "lacks pubsub.topics.publish; if"},
		"no right at all":            {rights, answer{200, `{}`}, []cloud.Verdict{cloud.NotOK, cloud.OK, cloud.OK}, "attachSubscription and pubsub.topics.publish"},
		"it keeps messages":          {topic, answer{200, `{"messageRetentionDuration":"86400s"}`}, []cloud.Verdict{cloud.OK, cloud.Warning, cloud.OK}, "keeps messages for 86400s"},
		"a subscription for ever":    {subscriptions, subscribed(`,"expirationPolicy":{}`), []cloud.Verdict{cloud.OK, cloud.OK, cloud.NotOK}, "1 of 2 never expire"},
		"the default of Pub/Sub":     {subscriptions, subscribed(""), []cloud.Verdict{cloud.OK, cloud.OK, cloud.OK}, ""},
		"no topic":                   {topic, answer{404, "{}"}, []cloud.Verdict{cloud.OK, cloud.NotOK, cloud.OK}, "does not exist"},
		"no right to list":           {subscriptions, answer{403, forbidden}, []cloud.Verdict{cloud.OK, cloud.OK, cloud.Unchecked}, "pubsub.subscriptions.list is missing"},
		"no right to read":           {topic, answer{403, forbidden}, []cloud.Verdict{cloud.OK, cloud.Unchecked, cloud.OK}, "pubsub.topics.get is missing"},
		"no answer about the rights": {rights, answer{503, "<html>"}, []cloud.Verdict{cloud.Unchecked, cloud.OK, cloud.OK}, "no clear answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := answers{topic: sound[topic], rights: sound[rights], subscriptions: sound[subscriptions]}
			is[c.path] = c.is
			found := is.serve(t).Members(t.Context(), "projects/p/topics/m")
			for i, f := range found {
				if f.Verdict != cloud.OK {
					wants(t, f, c.verdict[i], c.text)
				} else if c.verdict[i] != cloud.OK {
					t.Errorf("%s is ok: %s", f.Check, f.Text)
				}
			}
		})
	}
}

func TestRightsAreAskedForByNameAndSubscriptionsOnAllPagesAreSeen(t *testing.T) {
	t.Parallel()
	var asked struct{ Permissions []string }
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
				t.Error(err)
			}
			fmt.Fprint(w, `{}`)
		case r.URL.Path != "/v1/projects/p/subscriptions":
			fmt.Fprint(w, `{}`)
		case r.URL.Query().Get("pageToken") == "":
			fmt.Fprint(w, `{"nextPageToken":"two & more"}`)
		case r.URL.Query().Get("pageToken") == "two & more":
			fmt.Fprint(w, `{"subscriptions":[{"name":"projects/p/subscriptions/last","topic":"projects/p/topics/m","expirationPolicy":{}}]}`)
		default:
			t.Errorf("%s", r.URL)
		}
	}))
	t.Cleanup(s.Close)
	found := (&cloud.Client{HTTP: s.Client(), Base: s.URL}).Members(t.Context(), "projects/p/topics/m")
	wants(t, found[2], cloud.NotOK, "projects/p/subscriptions/last")
	if !slices.Equal(asked.Permissions, []string{"pubsub.topics.attachSubscription", "pubsub.topics.publish"}) {
		t.Errorf("asked for %q", asked.Permissions)
	}
}

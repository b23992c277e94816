package authz_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"regent/httpapi"
	"regent/httpapi/access/authn"
	"regent/httpapi/access/authz"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
	"regent/store/memory"
)

var update = flag.Bool("update", false, "write the golden table anew")

// accessText gives each role to a principal of its name, over elections that begin with "own".
const accessText = `
grants:
  - {principals: [candidate@test], roles: [candidate], elections: ["own*"], candidates: ["ann*"]}
  - {principals: [observer@test], roles: [observer], elections: ["own*"]}
  - {principals: [verifier@test], roles: [verifier], elections: ["own*"]}
  - {principals: [scheduler@test], roles: [scheduler]}
  - {principals: [halter@test], roles: [halter], elections: ["own*"]}
  - {principals: [operator@test], roles: [operator], elections: ["own*"]}
  - {principals: [admin@test], roles: [admin], elections: ["own*"]}
`

// cases are the requests of the table: each verb, in each of its forms.
var cases = []struct {
	call                       string
	verb                       wire.Verb
	method, path, body, stream string
}{
	{"acquire", wire.VerbAcquire, "POST", "/v1/elections/{e}:acquire", `{"candidateId":"{c}"}`, ""},
	{"renew", wire.VerbRenew, "POST", "/v1/elections/{e}:renew", `{"candidateId":"{c}","key":"{k}","fencingToken":1}`, ""},
	{"batch renew", wire.VerbBatchRenew, "POST", "/v1/elections:batchRenew", `{"renewals":[{"election":"{e}","candidateId":"{c}","key":"{k}","fencingToken":1}]}`, ""},
	{"release", wire.VerbRelease, "POST", "/v1/elections/{e}:release", `{"candidateId":"{c}","key":"{k}","fencingToken":1}`, ""},
	{"check token", wire.VerbCheckToken, "POST", "/v1/elections/{e}:checkToken", `{"fencingToken":1}`, ""},
	{"batch check tokens", wire.VerbBatchCheckTokens, "POST", "/v1/elections:batchCheckTokens", `{"checks":[{"election":"{e}","fencingToken":1}]}`, ""},
	{"read", wire.VerbRead, "GET", "/v1/elections/{e}", "", ""},
	{"read, strongly", wire.VerbRead, "GET", "/v1/elections/{e}?consistency=strong", "", ""},
	{"long poll", wire.VerbRead, "GET", "/v1/elections/{e}?wait=1ms", "", ""},
	{"list", wire.VerbList, "GET", "/v1/elections", "", ""},
	{"history", wire.VerbEvents, "GET", "/v1/elections/{e}/events", "", ""},
	{"watch", wire.VerbWatch, "GET", "/v1/elections/{e}/events", "", wire.StreamType},
	{"watch as a member", wire.VerbWatch, "GET", "/v1/elections/{e}/events?member={c}", "", wire.StreamType},
	{"watch all", wire.VerbWatchAll, "GET", "/v1/events?prefix={e}", "", wire.StreamType},
	{"watch all of all", wire.VerbWatchAll, "GET", "/v1/events", "", wire.StreamType},
	{"configure", wire.VerbConfigure, "PUT", "/v1/elections/{e}", `{"leaseDuration":"30s"}`, ""},
	{"delete", wire.VerbDelete, "DELETE", "/v1/elections/{e}", "", ""},
	{"unlock", wire.VerbUnlock, "POST", "/v1/elections/{e}:unlock", `{"reason":"it hangs"}`, ""},
	{"assign", wire.VerbAssign, "POST", "/v1/elections/{e}:assign", `{"candidateId":"ann","for":"1h","reason":"it is better"}`, ""},
	{"evict", wire.VerbEvict, "POST", "/v1/elections/{e}:evict", `{"ban":"1h","reason":"it hangs"}`, ""},
	{"pause", wire.VerbPause, "POST", "/v1/elections/{e}:pause", `{"for":"1h","mode":"drain","reason":"the sale"}`, ""},
	{"resume", wire.VerbResume, "POST", "/v1/elections/{e}:resume", `{"reason":"the sale is over"}`, ""},
	{"ban", wire.VerbBan, "POST", "/v1/elections/{e}:ban", `{"candidateId":"ann","for":"1h","reason":"it hangs"}`, ""},
	{"approve", wire.VerbApprove, "POST", "/v1/elections/{e}:approve", `{"fencingToken":1,"newEpoch":true,"reason":"checked"}`, ""},
	{"halt", wire.VerbHalt, "POST", "/v1/elections/{e}*:halt", `{"for":"1h","reason":"poisoned"}`, ""},
	{"halt of more", wire.VerbHalt, "POST", "/v1/elections/o*:halt", `{"for":"1h","reason":"poisoned"}`, ""},
	{"unhalt", wire.VerbUnhalt, "POST", "/v1/elections/{e}*:unhalt", `{"reason":"mended"}`, ""},
	{"lift", wire.VerbLift, "POST", "/v1/elections/{e}:lift", `{"override":"ban-1","reason":"it is well again"}`, ""},
	{"overrides", wire.VerbOverrides, "GET", "/v1/elections/{e}/overrides", "", ""},
	{"judge", wire.VerbJudge, "POST", "/v1/elections/{e}:judge", `{"fencingToken":1,"verdict":"bad","evidence":"page 7"}`, ""},
	{"step down", wire.VerbStepDown, "POST", "/v1/elections/{e}:stepDown", `{"candidateId":"{c}","key":"{k}","fencingToken":1,"reason":"no memory"}`, ""},
	{"request approval", wire.VerbRequestApproval, "POST", "/v1/elections/{e}:requestApproval", `{"candidateId":"{c}","key":"{k}","fencingToken":1,"note":"step 3"}`, ""},
	{"explain", wire.VerbExplain, "GET", "/v1/elections/{e}/candidates/{c}:explain", "", ""},
	{"join", wire.VerbJoin, "POST", "/v1/elections/{e}:join", `{"candidateId":"{c}","role":"follower","ttl":"30s"}`, ""},
	{"leave", wire.VerbLeave, "POST", "/v1/elections/{e}:leave", `{"candidateId":"{c}"}`, ""},
	{"members", wire.VerbMembers, "GET", "/v1/elections/{e}/members", "", ""},
	{"await acknowledgement", wire.VerbAcknowledgement, "POST", "/v1/elections/{e}:awaitAcknowledgement", `{"fencingToken":1,"need":1,"wait":"1ms"}`, ""},
	{"acquire via own", wire.VerbAcquire, "POST", "/v1/elections/{e}:acquire", `{"candidateId":"{c}","via":{"election":"own","fencingToken":1}}`, ""},
	{"acquire via foreign", wire.VerbAcquire, "POST", "/v1/elections/{e}:acquire", `{"candidateId":"{c}","via":{"election":"foreign","fencingToken":1}}`, ""},
	{"hand over", wire.VerbHandOver, "POST", "/v1/elections/{e}:handOver", `{"candidateId":"{c}","key":"{k}","fencingToken":1,"to":"bob"}`, ""},
	{"say ready", wire.VerbSayReady, "POST", "/v1/elections/{e}:ready", `{"candidateId":"{c}","key":"{k}","fencingToken":1}`, ""},
	{"say serving", wire.VerbSayServing, "POST", "/v1/elections/{e}:serving", `{"candidateId":"{c}","key":"{k}","fencingToken":1}`, ""},
	{"yield", wire.VerbYield, "POST", "/v1/elections/{e}:yield", `{"candidateId":"{c}","key":"{k}","fencingToken":1}`, ""},
	{"delegate", wire.VerbDelegate, "POST", "/v1/elections/{e}:delegate", `{"candidateId":"{c}","key":"{k}","fencingToken":1,"child":"part"}`, ""},
	{"tree", wire.VerbTree, "GET", "/v1/elections/{e}/tree", "", ""},
	{"put checkpoint", wire.VerbPutCheckpoint, "PUT", "/v1/elections/{e}/checkpoint", `{"candidateId":"{c}","key":"{k}","fencingToken":1,"sequence":1,"data":1}`, ""},
	{"checkpoint", wire.VerbCheckpoint, "GET", "/v1/elections/{e}/checkpoint", "", ""},
	{"open journal", wire.VerbOpenJournal, "POST", "/v1/elections/{e}/journal:open", `{"candidateId":"{c}","key":"{k}","fencingToken":1}`, ""},
	{"append journal", wire.VerbAppendJournal, "POST", "/v1/elections/{e}/journal:append", `{"candidateId":"{c}","key":"{k}","fencingToken":1,"after":0,"entries":[{"data":1}]}`, ""},
	{"journal", wire.VerbJournal, "GET", "/v1/elections/{e}/journal", "", ""},
	{"journal as a member", wire.VerbJournal, "GET", "/v1/elections/{e}/journal?member={c}&applied=0", "", ""},
	{"follow journal", wire.VerbFollowJournal, "GET", "/v1/elections/{e}/journal", "", wire.StreamType},
	{"follow as a member", wire.VerbFollowJournal, "GET", "/v1/elections/{e}/journal?member={c}", "", wire.StreamType},
	{"snapshot journal", wire.VerbSnapshotJournal, "PUT", "/v1/elections/{e}/journal/snapshot", `{"candidateId":"{c}","key":"{k}","fencingToken":1,"upTo":1,"data":1}`, ""},
	{"read snapshot", wire.VerbReadSnapshot, "GET", "/v1/elections/{e}/journal/snapshot", "", ""},
	{"begin effect", wire.VerbBeginEffect, "POST", "/v1/elections/{e}:begin", `{"candidateId":"{c}","key":"{k}","fencingToken":1,"effectId":"mail"}`, ""},
	{"finish effect", wire.VerbFinishEffect, "POST", "/v1/elections/{e}:finish", `{"candidateId":"{c}","key":"{k}","fencingToken":1,"effectId":"mail","result":1}`, ""},
	{"effects", wire.VerbEffects, "GET", "/v1/elections/{e}/effects", "", ""},
	{"propose", wire.VerbPropose, "POST", "/v1/elections/{e}:propose", `{"candidateId":"{c}","proposalId":"p","kind":"scale"}`, ""},
	{"decide", wire.VerbDecide, "POST", "/v1/elections/{e}:decide", `{"candidateId":"{c}","key":"{k}","fencingToken":1,"proposalId":"p","verdict":"accepted"}`, ""},
	{"proposals", wire.VerbProposals, "GET", "/v1/elections/{e}/proposals", "", ""},
	{"tick", wire.VerbTick, "POST", "/v1/maintenance:tick", "", ""},
}

// The table has every role and every call, over own and other elections, under own and other
// candidate ids, over HTTP.
func TestTheTableOfRightsIsAsWritten(t *testing.T) {
	t.Parallel()
	var table bytes.Buffer
	fmt.Fprintf(&table, "%-22s %-12s %-12s", "call", "election", "candidate")
	who := append([]string{"nobody"}, names()...)
	for _, role := range who {
		fmt.Fprintf(&table, " %-10s", role)
	}
	for _, c := range cases {
		for _, election := range []string{"own", "foreign"} {
			for _, candidate := range []string{"ann", "bob"} {
				if candidate == "bob" && !strings.Contains(c.path+c.body, "{c}") || election == "foreign" && !strings.Contains(c.path+c.body, "{e}") {
					continue
				}
				fmt.Fprintf(&table, "\n%-22s %-12s %-12s", c.call, election, candidate)
				for _, role := range who {
					fmt.Fprintf(&table, " %-10s", ask(t, role, c.method, c.path, c.body, c.stream, election, candidate))
				}
			}
		}
	}
	got := regexp.MustCompile(` +\n`).ReplaceAllString(table.String()+"\n", "\n")
	const golden = "testdata/rights.golden"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the table of rights has changed (-written +found); if it should, go test ./httpapi/access/authz -update:\n%s", diff)
	}
}

func names() (all []string) {
	for _, r := range wire.Roles() {
		all = append(all, string(r))
	}
	return all
}

// ask makes a call of a role's principal on a service where ann leads both elections, and returns
// the result: "yes" if it reached the service.
func ask(t *testing.T, role, method, path, body, stream, election, candidate string) string {
	t.Helper()
	key := leadership.NewKey()
	service := newService(t, election, key)
	adapt := strings.NewReplacer("{e}", election, "{c}", candidate, "{k}", key.Text())
	r := httptest.NewRequest(method, adapt.Replace(path), strings.NewReader(adapt.Replace(body)))
	if body != "" {
		r.Header.Set("Content-Type", wire.ContentType)
	}
	if stream != "" {
		r.Header.Set("Accept", stream)
	}
	if strings.Contains(path, "wait=") {
		r.Header.Set("If-None-Match", `"1"`)
	}
	for _, c := range cases {
		if c.method == method && c.path == path && c.verb.Row().Conditional {
			r.Header.Set("If-Match", `"1"`)
		}
	}
	ctx, cancel := context.WithCancel(authn.With(t.Context(), authn.Principal{Issuer: "test", Subject: role, Email: role + "@test"}))
	defer cancel()
	w := &endless{ResponseRecorder: httptest.NewRecorder(), end: cancel, stream: stream != ""}
	service.ServeHTTP(w, r.WithContext(ctx))
	switch text := w.Body.String(); {
	case w.Code == http.StatusForbidden, strings.Contains(text, `"code":"PERMISSION_DENIED"`):
		return "-"
	case w.Code >= 500:
		t.Errorf("%s %s by %s: %d %s", method, path, role, w.Code, text)
	}
	return "yes"
}

// endless ends a stream once it has begun.
type endless struct {
	*httptest.ResponseRecorder
	end    func()
	stream bool
}

func (w *endless) Flush() {
	if w.stream {
		w.end()
	}
}

// newService returns an API behind a Gate, with ann leading the election.
func newService(t *testing.T, election string, key leadership.Key) http.Handler {
	t.Helper()
	handler := guarded(t, accessText)
	_, err := handler.instance.Acquire(t.Context(), leadership.AcquireRequest{Election: leadership.Election(election), CandidateID: "ann", Key: &key})
	require.NoError(t, err)
	return handler
}

// gated is an API behind a Gate, and its parts.
type gated struct {
	http.Handler
	instance *instance.Instance // without a gate
	service  *instance.Guarded
	records  *[]authz.Record
}

func guarded(t *testing.T, text string) gated {
	t.Helper()
	store := memory.New(memory.Config{})
	inst, err := instance.New(instance.Config{Store: store, Journal: store, Name: "test", Alone: true})
	require.NoError(t, err)
	access, err := authz.ParseAccess([]byte(text), authz.Admitted)
	require.NoError(t, err)
	var records []authz.Record
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		inst.Run(ctx)
	}()
	t.Cleanup(func() { stop(); <-ran })
	gate := authz.NewGate(func() *authz.Access { return access }, func(_ context.Context, r authz.Record) { records = append(records, r) })
	service := instance.Guard(inst, gate)
	admit := func(ctx context.Context, ask wire.Admission) (context.Context, func(), error) {
		return ctx, func() {}, gate.Admit(ctx, instance.Op{Row: ask.Row, Election: ask.Election})
	}
	return gated{httpapi.New(httpapi.Config{Service: service, Admit: admit}), inst, service, &records}
}

func TestEveryVerbHasARowInTheTableOfRights(t *testing.T) {
	t.Parallel()
	asked := map[wire.Verb]bool{}
	for _, c := range cases {
		row := c.verb.Row()
		if path := strings.NewReplacer("{election}", "{e}", "{candidate}", "{c}").Replace(row.Path); row.Method != c.method || path != strings.NewReplacer("{e}*", "{e}", "o*", "{e}").Replace(strings.SplitN(c.path, "?", 2)[0]) {
			t.Errorf("case %q is for verb %s, which is %s %s", c.call, c.verb, row.Method, row.Path)
		}
		asked[c.verb] = true
	}
	for _, row := range wire.Verbs() {
		if public := len(row.Roles) == 0; public == asked[row.Verb] {
			t.Errorf("verb %s: public %v, in the table of rights %v; add its requests to cases", row.Verb, public, asked[row.Verb])
		}
	}
}

package httpapi_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"regent/httpapi"
	"regent/httpapi/apitest"
	"regent/leadership/wire"
	"regent/store/memory"
)

var update = flag.Bool("update", false, "write the tables of README.md")

// calls returns the routes of all rows. Two rows may share one.
func calls() (all []string) {
	for _, row := range wire.Verbs() {
		all = append(all, row.Method+" "+row.Path)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestTheSpecificationHasTheCallsOfTheRows(t *testing.T) {
	t.Parallel()
	doc := apitest.Load(t)
	var got []string
	for path, item := range doc.At("paths").All() {
		for method := range item.All() {
			if method != "parameters" {
				got = append(got, strings.ToUpper(method)+" "+path)
			}
		}
	}
	slices.Sort(got)
	if diff := gocmp.Diff(calls(), got); diff != "" {
		t.Errorf("rows (-) and specification (+) differ:\n%s", diff)
	}
	for _, row := range wire.Verbs() {
		responses := operationOf(doc, row).At("responses")
		if row.Type != "" && responses.At("200", "content", row.Type).Value() == nil {
			t.Errorf("verb %s: the specification has no reply of type %s", row.Verb, row.Type)
		}
		if changes := row.Changes(); changes != (responses.At("504").Value() != nil) && row.Scope != wire.ScopeService {
			t.Errorf("verb %s: changes something: %v; OUTCOME_UNKNOWN in the specification: %v", row.Verb, changes, !changes)
		}
	}
}

// operationOf returns the operation of a row in the specification.
func operationOf(doc apitest.Node, row wire.Row) apitest.Node {
	return doc.At("paths", row.Path, strings.ToLower(row.Method))
}

func TestTheSpecificationNamesEveryRefusalThatACallCanGet(t *testing.T) {
	t.Parallel()
	doc := apitest.Load(t)
	for _, row := range wire.Verbs() {
		operation := operationOf(doc, row)
		want := []int{http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusRequestURITooLong, http.StatusInternalServerError}
		if row.Type != "" {
			want = append(want, http.StatusNotAcceptable)
		}
		if operation.At("requestBody").Value() != nil {
			want = append(want, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
		}
		guarded := strings.HasPrefix(row.Path, wire.PathGuarded)
		if guarded {
			want = append(want, http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusServiceUnavailable)
		}
		for _, status := range want {
			if operation.At("responses", strconv.Itoa(status)).Value() == nil {
				t.Errorf("verb %s: the specification does not name status %d", row.Verb, status)
			}
		}
		if asks := operation.At("security").Value() == nil; asks != guarded { // without it, the security of the whole document applies
			t.Errorf("verb %s: the specification asks for a token: %t, want %t", row.Verb, asks, guarded)
		}
	}
	if doc.At("components", "securitySchemes", "bearer", "scheme").Value() != "bearer" || doc.At("security", "0").Value() == nil {
		t.Error("the specification does not say how a caller says who it is")
	}
}

func TestTheRoutesAreThoseOfTheRows(t *testing.T) {
	t.Parallel()
	h := httpapi.New(httpapi.Config{Service: newInstance(t, memory.New(memory.Config{}), new(clock))})
	constraint := regexp.MustCompile(`\{(\w+):\[[^\]]*\]\+(:\w+)?\}`)
	var got []string
	chi.Walk(h.(chi.Routes), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		got = append(got, method+" "+constraint.ReplaceAllString(route, "{$1}$2"))
		return nil
	})
	slices.Sort(got)
	if diff := gocmp.Diff(calls(), got); diff != "" {
		t.Errorf("rows (-) and routes (+) differ:\n%s", diff)
	}
}

func TestAVerbWithoutARowOrAHandlerDoesNotStart(t *testing.T) {
	t.Parallel()
	rows := wire.Verbs()
	require.NoError(t, httpapi.Route(rows))
	at := slices.IndexFunc(rows, func(r wire.Row) bool { return r.Verb == wire.VerbRenew })
	open := slices.Clone(rows)
	open[at].Roles = nil
	free := slices.Clone(rows)
	free[at].Cost = ""
	for _, c := range []struct {
		err  error
		want string
	}{
		{httpapi.Route(slices.Delete(slices.Clone(rows), at, at+1)), `verb "renew" has a handler and no row`},
		{httpapi.Route(rows, wire.VerbRenew), `verb "renew" has a row in wire.Verbs and no handler`},
		{httpapi.Route(open), `verb "renew" needs roles and a cost`},
		{httpapi.Route(free), `verb "renew" needs roles and a cost`},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%v, want %s", c.err, c.want)
		}
	}
}

// The tables of README.md are written from the rows and the codes.
func TestTheTablesOfTheReadmeAreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	var verbs, codes bytes.Buffer
	verbs.WriteString("| verb | call | roles | limit | repeat | what it takes and answers |\n|---|---|---|---|---|---|\n")
	for _, row := range wire.Verbs() {
		var roles []string
		for _, role := range row.Roles {
			roles = append(roles, string(role))
		}
		fmt.Fprintf(&verbs, "| %s | `%s %s` | %s | %s | %s | %s |\n", row.Verb, row.Method, row.Path,
			cmp.Or(strings.Join(roles, ", "), "anyone"), cmp.Or(row.Cost, "none"), row.Repeat, row.Does)
	}
	codes.WriteString("| status | code | meaning |\n|---|---|---|\n")
	for _, m := range wire.Meanings() {
		fmt.Fprintf(&codes, "| %d | `%s` | %s |\n", m.Status, m.Code, m.Advice)
	}
	const name = "README.md"
	written, err := os.ReadFile(name)
	require.NoError(t, err)
	text := string(written)
	for table, rows := range map[string]string{"verbs": verbs.String(), "codes": codes.String()} {
		head, rest, ok := strings.Cut(text, "<!-- table of "+table+" -->\n")
		_, tail, ended := strings.Cut(rest, "<!-- end of "+table+" -->")
		if !ok || !ended {
			t.Fatalf("%s has no place for the table of %s", name, table)
		}
		text = head + "<!-- table of " + table + " -->\n" + rows + "<!-- end of " + table + " -->" + tail
	}
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		return
	}
	if diff := gocmp.Diff(text, string(written)); diff != "" {
		t.Errorf("%s is not as the code has it (-want +got); go test ./httpapi -run Readme -update:\n%s", name, diff)
	}
}

package style

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// arrows says what each package may import, besides the standard library and itself. A pattern that
// ends in "/..." takes all below it. A package that is not listed here is refused: a new one must
// be given its place.
var arrows = []arrow{
	{"regent/leadership", []string{"regent/leadership/internal/form"}, "the domain stands on nothing"},
	{"regent/leadership/internal/form", nil, "how a value is written knows nothing of elections"},
	{"regent/leadership/rule", []string{"regent/leadership", "regent/leadership/internal/form"}, "the rules know what callers say, and nothing of who runs them"},
	{"regent/leadership/service", []string{"regent/leadership", "regent/leadership/internal/form", "regent/leadership/rule"}, "the service knows a store by its interface"},
	{"regent/leadership/wire", []string{"regent/leadership", "github.com/go-json-experiment/json/..."}, "the JSON forms that server and SDK share must burden neither"},
	{"regent/leadership/wire/generate", nil, "what writes source needs the standard library alone"},
	{"regent/leadership/client", []string{"regent/leadership", "regent/leadership/boottime", "regent/leadership/wire"}, "the SDK brings its users no cloud and no router"},
	{"regent/leadership/client/clienttest", []string{"regent/leadership/...", "regent/httpapi", "regent/store/memory"}, "a server for users' tests, whole and in memory"},
	{"regent/leadership/statement", []string{"regent/leadership", "regent/leadership/wire", "github.com/go-jose/go-jose/v4", "github.com/go-json-experiment/json/..."}, "a statement is verified without a server"},
	{"regent/leadership/fence", []string{"regent/leadership"}, "the rule of a fence knows no place where marks are kept"},
	{"regent/leadership/fence/httpfence", []string{"regent/leadership", "regent/leadership/boottime", "regent/leadership/fence", "regent/leadership/wire"}, "a service that is guarded brings in no server of Regent's"},
	{"regent/leadership/fence/fencetest", []string{"regent/leadership", "regent/leadership/fence"}, "the suite of all fences knows the mark, and no place where it is kept"},
	{"regent/leadership/fence/firestorefence", []string{"regent/leadership", "regent/leadership/fence", "cloud.google.com/go/firestore/...", "google.golang.org/..."}, "a fence knows its database and the domain"},
	{"regent/leadership/fence/bigqueryfence", []string{"regent/leadership/fence"}, "a fence knows the mark, and no client"},
	{"regent/leadership/fence/pubsubfence", []string{"regent/leadership", "regent/leadership/fence", "cloud.google.com/go/pubsub/v2"}, "a fence knows its messages and the domain"},
	{"regent/leadership/fence/spannerfence", []string{"regent/leadership", "regent/leadership/fence", "cloud.google.com/go/spanner/..."}, "a fence knows its database and the domain"},
	{"regent/leadership/fence/sqlfence", []string{"regent/leadership", "regent/leadership/fence"}, "a fence knows the mark, and no driver"},
	{"regent/leadership/fence/storagefence", []string{"regent/leadership", "regent/leadership/fence", "google.golang.org/api/googleapi"}, "a fence knows the mark, and what a reply of Google says"},
	{"regent/leadership/boottime", []string{"golang.org/x/sys/..."}, "a clock knows nothing"},
	{"regent/cmd/regent/internal/leash", []string{"regent/leadership/boottime", "golang.org/x/sys/..."}, "a leash knows processes and a clock, never who leads"},
	{"regent/cmd/regent/internal/apply", []string{"regent/leadership", "regent/leadership/wire", "go.yaml.in/yaml/..."}, "what applies files knows configurations, and its server as four calls"},
	{"regent/cmd/regent/internal/cloud", []string{"regent/leadership/statement", "google.golang.org/api/..."}, "what looks at a project knows its REST APIs, and of Regent the keys that sign"},
	{"regent/leadership/instance", []string{"regent/leadership", "regent/leadership/service", "regent/leadership/boottime", "regent/leadership/instance/internal/...", "regent/leadership/wire"}, "an instance puts the parts together, on any store and any bus"},
	{"regent/leadership/instance/internal/view", []string{"regent/leadership", "regent/leadership/rule", "regent/leadership/instance/internal/backoff"}, "a view has no clock, no lock and no store, and only counts how long a wait is"},
	{"regent/leadership/instance/internal/members", []string{"regent/leadership", "regent/leadership/instance/internal/view"}, "the registry of members has no clock, no lock, no bus and no store, and reads in the view who leads"},
	{"regent/leadership/instance/internal/hub", []string{"regent/leadership", "regent/leadership/rule", "regent/leadership/boottime", "regent/leadership/instance/internal/backoff", "regent/leadership/instance/internal/view"}, "the hub drives the view, and never knows who carries its events"},
	{"regent/leadership/instance/internal/line", []string{"regent/leadership", "regent/leadership/rule", "regent/leadership/instance/internal/backoff", "regent/leadership/instance/internal/hub", "regent/leadership/instance/internal/view"}, "a line reads the view, and asks through a function"},
	{"regent/leadership/instance/internal/outbox", []string{"regent/leadership", "regent/leadership/rule", "regent/leadership/boottime", "regent/leadership/instance/internal/backoff", "regent/leadership/instance/internal/failpoint"}, "the outbox knows a topic by its interface"},
	{"regent/leadership/instance/internal/renewals", []string{"regent/leadership", "regent/leadership/rule", "regent/leadership/service"}, "what gathers renewals knows a store by its interface"},
	{"regent/leadership/instance/internal/failpoint", nil, "a failpoint knows nothing"},
	{"regent/leadership/instance/internal/backoff", nil, "a wait knows nothing"},
	{"regent/leadership/instance/pubsub", []string{"regent/leadership", "regent/leadership/internal/form", "regent/leadership/instance/internal/backoff", "regent/leadership/wire", "cloud.google.com/go/pubsub/v2/...", "google.golang.org/..."}, "adapters know the domain, never each other"},
	{"regent/leadership/instance/instancetest", []string{"regent/leadership", "regent/leadership/instance/internal/..."}, "the parts of an instance that tests drive"},
	{"regent/leadership/telemetry", []string{"regent/leadership", "regent/leadership/rule", "regent/leadership/service", "regent/leadership/instance", "regent/leadership/wire", "github.com/hashicorp/golang-lru/v2/...", "go.opentelemetry.io/..."}, "telemetry is a gate and a decorator; no part that it measures knows of it"},
	{"regent/leadership/telemetry/export", []string{"go.opentelemetry.io/...", "github.com/prometheus/client_golang/...", "github.com/go-logr/logr", "golang.org/x/oauth2/google", "google.golang.org/grpc/..."}, "what carries telemetry away knows nothing of Regent"},
	{"regent/leadership/telemetry/telemetrytest", []string{"regent/leadership/...", "regent/store/memory", "github.com/stretchr/testify/require", "go.opentelemetry.io/..."}, "an instance that is measured, for tests"},
	{"regent/httpapi/access/authn", []string{"regent/leadership", "regent/leadership/wire", "github.com/go-jose/go-jose/v4", "github.com/go-json-experiment/json/...", "github.com/hashicorp/golang-lru/v2"}, "who calls is found out before anything of the API is known"},
	{"regent/httpapi/access/authn/issuertest", nil, "an identity provider knows nothing of Regent"},
	{"regent/httpapi/access/limit", []string{"regent/httpapi/access/authn", "regent/leadership", "regent/leadership/instance", "regent/leadership/wire", "github.com/hashicorp/golang-lru/v2/...", "golang.org/x/time/..."}, "limits are a gate, and know no policy and no door"},
	{"regent/httpapi/access/authz", []string{"regent/httpapi/access/authn", "regent/httpapi/access/limit", "regent/leadership", "regent/leadership/instance", "regent/leadership/wire", "go.yaml.in/yaml/..."}, "rights are a gate, and know no token and no door"},
	{"regent/httpapi", []string{"regent/leadership", "regent/leadership/instance", "regent/leadership/statement", "regent/leadership/wire", "github.com/go-chi/chi/v5/..."}, "a door knows the guarded service, never a store or a gate"},
	{"regent/httpapi/dashboard", []string{"regent/httpapi/access/authn", "regent/leadership", "regent/leadership/wire"}, "a page that calls the API in the browser knows no service"},
	{"regent/httpapi/kubernetes", []string{"regent/httpapi/access/authn", "regent/leadership", "regent/leadership/instance", "regent/leadership/wire", "github.com/go-json-experiment/json/...", "google.golang.org/protobuf/encoding/protowire"}, "a door knows the guarded service, never a store or a gate"},
	{"regent/httpapi/mcp", []string{"regent/httpapi/access/authn", "regent/leadership", "regent/leadership/client", "regent/leadership/wire", "github.com/go-json-experiment/json/...", "github.com/modelcontextprotocol/go-sdk/...", "go.opentelemetry.io/otel/trace"}, "the tools of a model stand on the SDK, and know no service and no gate"},
	{"regent/httpapi/timing", []string{"regent/leadership/wire", "github.com/go-chi/chi/v5", "go.opentelemetry.io/..."}, "what times requests knows the routes alone"},
	{"regent/store/memory", []string{"regent/leadership", "regent/leadership/rule", "regent/leadership/service", "regent/store/internal/history", "regent/store/internal/logs", "regent/store/internal/retirement"}, "adapters know the domain, never each other"},
	{"regent/store/file", []string{"regent/leadership", "regent/leadership/rule", "regent/leadership/service", "regent/store/internal/history", "regent/store/internal/logs", "regent/store/internal/retirement", "regent/leadership/boottime", "golang.org/x/sys/..."}, "adapters know the domain, never each other"},
	{"regent/store/firestore", []string{"regent/leadership", "regent/leadership/rule", "regent/leadership/service", "regent/store/internal/calls", "regent/store/internal/history", "cloud.google.com/go/firestore/...", "github.com/googleapis/gax-go/v2/...", "github.com/hashicorp/golang-lru/v2/...", "google.golang.org/..."}, "adapters know the domain, never each other"},
	{"regent/store/spanner", []string{"regent/leadership", "regent/leadership/rule", "regent/leadership/service", "regent/store/internal/calls", "regent/store/internal/history", "cloud.google.com/go/spanner/...", "github.com/googleapis/gax-go/v2/...", "google.golang.org/..."}, "adapters know the domain, never each other"},
	{"regent/store/internal/calls", nil, "what counts calls knows nothing"},
	{"regent/store/internal/history", []string{"regent/leadership", "regent/leadership/rule"}, "what all stores have in common knows the domain"},
	{"regent/store/internal/logs", []string{"regent/leadership", "regent/leadership/rule"}, "what stores in memory have in common knows the domain"},
	{"regent/store/internal/retirement", []string{"regent/leadership", "regent/leadership/rule"}, "what stores in memory have in common knows the domain"},
	{"regent/store", []string{"regent/leadership", "regent/leadership/rule", "regent/leadership/service", "regent/store/internal/history", "regent/store/memory", "regent/store/file", "regent/store/firestore", "regent/store/spanner"}, "one switch over all stores"},
	{"regent/cmd/regent", []string{"regent/cmd/regent/internal/...", "regent/leadership/...", "regent/httpapi/...", "regent/store", "github.com/spf13/...", "golang.org/x/time/rate"}, "the wiring chooses a store by its spec alone"},
	{"regent/emulators/need", nil, "what ends a test knows nothing"},
	{"regent/emulators", []string{"regent/emulators/need", "github.com/testcontainers/...", "google.golang.org/...", "golang.org/x/sys/..."}, "emulators know nothing of Regent"},
	{"regent/cmd/dev", []string{"regent/emulators", "regent/store", "golang.org/x/sys/..."}, "what starts everything chooses a store by its spec alone"},
	{"regent/cmd/emulators", []string{"regent/emulators", "regent/emulators/need", "golang.org/x/sys/..."}, "emulators know nothing of Regent"},
	{"regent/store/storetest", []string{"regent/leadership/...", "regent/httpapi/...", "regent/store/memory", "regent/test/machine", "github.com/google/go-cmp/...", "github.com/stretchr/testify/require", "google.golang.org/grpc/stats"}, "the suite sees what users see"},
	{"regent/httpapi/apitest", []string{"regent/httpapi/...", "regent/leadership/...", "github.com/santhosh-tekuri/jsonschema/...", "go.yaml.in/yaml/..."}, "the contract checker is for tests"},
	{"regent/test/...", []string{"..."}, "tests may import anything"},
}

// arrow is one row of the table.
type arrow struct {
	pkg     string
	imports []string
	reason  string
}

// onlyTests are packages that may be imported by tests, by each other and by the named commands,
// and by no shipped package.
var onlyTests = map[string]string{
	"regent/store/storetest": "",
	"regent/httpapi/apitest": "",
	"regent/emulators":       "regent/cmd/emulators, regent/cmd/dev",

	"regent/leadership/client/clienttest":    "",
	"regent/httpapi/access/authn/issuertest": "",
	"regent/leadership/fence/fencetest":      "",

	"regent/leadership/telemetry/telemetrytest": "",
	"regent/leadership/instance/instancetest":   "",
}

type pkg struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Deps       []string
}

func TestImportsFollowTheArrows(t *testing.T) {
	t.Parallel()
	standard := map[string]bool{}
	for _, p := range list(t, "std") {
		standard[p.ImportPath] = true
	}
	for _, p := range list(t, "regent/...") {
		i := slices.IndexFunc(arrows, func(a arrow) bool { return matches(a.pkg, p.ImportPath) })
		if i < 0 {
			t.Errorf("%s stands in no rule: say in this table what it may import, and why", p.ImportPath)
			continue
		}
		for _, imported := range p.Imports {
			if !standard[imported] && !slices.ContainsFunc(arrows[i].imports, func(pattern string) bool { return matches(pattern, imported) }) {
				t.Errorf("%s imports %s: %s", p.ImportPath, imported, arrows[i].reason)
			}
		}
	}
}

// sdkNeeds are the modules that the SDK brings its users. go-json-experiment/json is
// encoding/json/v2 before it is in the standard library, and needs no other module. It replaces a
// JSON decoder of our own, and becomes a set of aliases where Go has encoding/json/v2.
var sdkNeeds = []string{"golang.org/x/sys/...", "github.com/go-json-experiment/json/..."}

// above are the trees that a tree must not import, in what is shipped. leadership/doc.go draws it.
var above = map[string][]string{
	"regent/leadership/...": {"regent/httpapi/...", "regent/store/...", "regent/cmd/..."},
	"regent/store/...":      {"regent/httpapi/...", "regent/cmd/..."},
	"regent/httpapi/...":    {"regent/store/...", "regent/cmd/..."},
}

func TestImportsOfTheTreesRunDownwards(t *testing.T) {
	t.Parallel()
	for _, p := range list(t, "regent/...") {
		if _, forTests := onlyTests[p.ImportPath]; forTests {
			continue
		}
		for tree, refused := range above {
			for _, imported := range p.Imports {
				if matches(tree, p.ImportPath) && slices.ContainsFunc(refused, func(pattern string) bool { return matches(pattern, imported) }) {
					t.Errorf("%s imports %s, which stands above it", p.ImportPath, imported)
				}
			}
		}
	}
}

func TestSDKBringsItsUsersNoDependencies(t *testing.T) {
	t.Parallel()
	for _, p := range list(t, "regent/leadership/client") {
		for _, dep := range p.Deps {
			host, _, _ := strings.Cut(dep, "/")
			allowed := func(pattern string) bool { return matches(pattern, dep) }
			if strings.Contains(host, ".") && !slices.ContainsFunc(sdkNeeds, allowed) {
				t.Errorf("%s needs %s", p.ImportPath, dep)
			}
		}
	}
}

func TestShippedCodeImportsNoTestPackage(t *testing.T) {
	t.Parallel()
	for _, p := range list(t, "regent/...") {
		for _, imported := range p.Imports {
			user, ok := onlyTests[imported]
			_, tester := onlyTests[p.ImportPath]
			if ok && !slices.Contains(strings.Split(user, ", "), p.ImportPath) && !tester && !strings.HasPrefix(p.ImportPath, "regent/test") {
				t.Errorf("%s imports %s, which is for tests", p.ImportPath, imported)
			}
		}
	}
}

// What the tags of the Makefile leave out is a third of the binary. With net/trace the linker also
// keeps every exported method, for the templates of its pages. What make run builds is without the
// clients of Google Cloud.
func TestTheBinaryIsLight(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile(filepath.Join(top, "Makefile"))
	require.NoError(t, err)
	tags := regexp.MustCompile(`TAGS := ([a-z_,]+)`).FindStringSubmatch(string(makefile))[1]
	without := func(tags, pattern string) {
		for _, name := range list(t, "-tags="+tags, "regent/cmd/regent")[0].Deps {
			if regexp.MustCompile(pattern).MatchString(name) {
				t.Errorf("with the tags %s the binary has %s in it", tags, name)
			}
		}
	}
	without(tags, "^golang.org/x/net/trace$|^github.com/envoyproxy/")
	without(tags+",regent_local", "^google.golang.org/(grpc|api)/|^cloud.google.com/|^github.com/googleapis/")
}

// clockless are the folders whose decisions must come from the store's clock alone.
var clockless = []string{top + "/leadership", top + "/leadership/rule", top + "/leadership/service", top + "/store/firestore", top + "/store/spanner"}

// A rule is run again by a store, so it has no part in what happens around it.
func TestRulesAreData(t *testing.T) {
	for _, p := range list(t, "regent/leadership/rule") {
		for _, name := range p.Imports {
			if name == "context" || name == "sync" || strings.HasPrefix(name, "sync/") {
				t.Errorf("%s imports %s", p.ImportPath, name)
			}
		}
	}
}

func TestNoRuleAndNoCloudStoreLooksAtTheProcessClock(t *testing.T) {
	for _, dir := range clockless {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", dir, err)
		}
		for _, name := range files {
			if !strings.HasSuffix(name, "_test.go") {
				noProcessClock(t, name)
			}
		}
	}
}

func noProcessClock(t *testing.T, name string) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains([]string{"Now", "Since", "Until"}, s.Sel.Name) {
				t.Errorf("%s calls time.%s: only the store's clock decides", fset.Position(s.Pos()), s.Sel.Name)
			}
		}
		return true
	})
}

func matches(pattern, name string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "..."); ok {
		prefix = strings.TrimSuffix(prefix, "/")
		return prefix == "" || name == prefix || strings.HasPrefix(name, prefix+"/")
	}
	return pattern == name
}

func list(t *testing.T, patterns ...string) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-json=ImportPath,Standard,Imports,Deps"}, patterns...)...)
	cmd.Dir = top
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var found []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return found
		} else if err != nil {
			t.Fatal(err)
		}
		found = append(found, p)
	}
}

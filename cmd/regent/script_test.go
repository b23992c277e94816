package main

import (
	"context"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"regent/leadership/wire"
)

// settingsOfScripts are the variables of a script's environment that its commands get, besides
// those before their arguments.
var settingsOfScripts = []string{"REGENT_SERVER", "REGENT_CANDIDATE", "REGENT_KEY", "REGENT_TOKEN", "REGENT_ACTOR", "REGENT_OUTPUT"}

// TestScripts runs sessions of users, each with a server of its own whose clock stands still.
// Beside the commands of testscript there are
//
//	regent ARGS [< FILE]       run it; it must exit with 0
//	exits CODE ARGS [< FILE]   run regent; it must exit with CODE
//	wrong TEXT ARGS [< FILE]   run regent; it must print one line with TEXT, and a hint
//	shows FILE                 what was printed last is FILE, but for spaces at the ends of lines
//	advance DURATION           advance the server's clock, and let the server look at it
//
// ARGS may begin with variables: NAME=VALUE. $KEY1 and $KEY2 are keys, $URL is the server's, and
// $ADDRESS its host and port.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			c, t := newClock(), e.T().(testing.TB)
			e.Values["clock"], e.Values["context"] = c, t.Context()
			server := startServer(t, c)[0]
			_, url, _ := strings.Cut(server, "=")
			e.Vars = append(e.Vars, server, "URL="+url, "ADDRESS="+strings.TrimPrefix(url, "http://"), "KEY1="+testKey(1), "KEY2="+testKey(2))
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"regent": func(ts *testscript.TestScript, neg bool, args []string) {
				runInScript(ts, neg, exitDone, args)
			},
			"exits": func(ts *testscript.TestScript, neg bool, args []string) {
				code, err := strconv.Atoi(args[0])
				ts.Check(err)
				runInScript(ts, neg, code, args[1:])
			},
			"wrong": func(ts *testscript.TestScript, neg bool, args []string) {
				r := runInScript(ts, neg, exitUsage, args[1:])
				lines := strings.Split(strings.TrimSuffix(r.err, "\n"), "\n")
				if r.out != "" || len(lines) != 2 || !strings.Contains(lines[0], args[0]) || !usageHint.MatchString(lines[1]) {
					ts.Fatalf("stdout %q, stderr\n%swant one line with %q, and a hint", r.out, r.err, args[0])
				}
			},
			"shows": func(ts *testscript.TestScript, _ bool, args []string) {
				got := regexp.MustCompile(` +\n`).ReplaceAllString(ts.ReadFile("stdout"), "\n")
				if diff := cmp.Diff(ts.ReadFile(args[0]), got); diff != "" {
					ts.Fatalf("(-want +got)\n%s", diff)
				}
			},
			"advance": func(ts *testscript.TestScript, _ bool, args []string) {
				d, err := time.ParseDuration(args[0])
				ts.Check(err)
				ts.Value("clock").(*clock).advance(d)
				ticked, err := http.Post(ts.Getenv("URL")+wire.PathTick, wire.ContentType, nil)
				ts.Check(err)
				ts.Check(ticked.Body.Close())
			},
		},
	})
}

var variable = regexp.MustCompile(`^[A-Z_]+=`)

var usageHint = regexp.MustCompile(`^Run 'regent( [a-z-]+){0,2} --help' for usage\.$`)

func runInScript(ts *testscript.TestScript, neg bool, code int, args []string) (r result) {
	if neg {
		ts.Fatalf("say which exit code is expected, with exits")
	}
	var env []string
	for _, name := range settingsOfScripts {
		if v := ts.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	for ; len(args) > 0 && variable.MatchString(args[0]); args = args[1:] {
		env = append(env, args[0])
	}
	in := ""
	if n := len(args); n > 1 && args[n-2] == "<" {
		in, args = ts.ReadFile(args[n-1]), args[:n-2]
	}
	var out, err strings.Builder
	r.code = run(ts.Value("context").(context.Context), args, system{strings.NewReader(in), &out, &err, env})
	r.out, r.err = out.String(), err.String()
	ts.Stdout().Write([]byte(r.out))
	ts.Stderr().Write([]byte(r.err))
	if r.code != code {
		ts.Fatalf("exit code %d, want %d", r.code, code)
	}
	return r
}

package main

import (
	"regexp"
	"strings"
	"testing"
)

func TestAWrongCommandLineIsOneSentenceAndAHint(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"acquir e", `unknown command "acquir" for "regent"; did you mean: acquire`},
		{"lead e", `unknown command "lead"`},
		{"help lead", `unknown command "lead"`},
		{"--nope", "unknown flag: --nope"},
		{"-5", "unknown shorthand flag"},
		{"status", "one argument"},
		{"status a b", "one argument"},
		{"status A", "a-z, 0-9"},
		{"status ../x", "a-z, 0-9"},
		{"status " + strings.Repeat("x", 129), "128"},
		{"list x", `no arguments, but got "x"`},
		{"serve x", `no arguments, but got "x"`},
		{"version x", `no arguments, but got "x"`},
		{"mcp x", `no arguments, but got "x"`},
		{"mcp --candidate a/b", "a candidate's id"},
		{"mcp --server ftp://x", "must begin with http:// or https://"},
		{"mcp --server http://regent.example.com", "give --insecure"},
		{"kubeconfig x", `no arguments, but got "x"`},
		{"kubeconfig --server ftp://x", "must begin with http:// or https://"},
		{"kubeconfig --audience x --id-token-file y", "audience id-token-file"},
		{"kubeconfig credential", "give --audience AUDIENCE or --id-token-file FILE"},
		{"kubeconfig credential x", `no arguments, but got "x"`},
		{"skill x", `no arguments, but got "x"`},
		{"migrate --store memory: x", `no arguments, but got "x"`},
		{"migrate", "--store is missing; give it, or set REGENT_STORE"},
		{"migrate --store=", "--store"},
		{"migrate --store redis:x", "memory:, file:PATH"},
		{"serve --listen 127.0.0.1:0 --store redis:x", "memory:, file:PATH"},
		{"serve --store=", "must not be empty"},
		{"serve --timeout 5s", "unknown flag: --timeout"},
		{"completion", "bash, zsh, fish or powershell"},
		{"completion tcsh", "bash, zsh, fish or powershell"},
		{"acquire e", "--candidate is missing; give it, or set REGENT_CANDIDATE"},
		{"acquire e --candidate", "needs an argument: --candidate"},
		{"acquire e --candidate=", "a candidate needs an id"},
		{"acquire e --candidate a/b", "a candidate's id"},
		{"acquire e --candidate a --lease 30", "a number and a unit"},
		{"acquire e --candidate a --lease -30s", "from 1s to 24h"},
		{"acquire e --candidate a --lease 999ms", "from 1s to 24h"},
		{"acquire e --candidate a --lease 25h", "from 1s to 24h"},
		{"acquire e --candidate a --lease 1s1us", "whole milliseconds"},
		{"acquire e --candidate a --lease 99999999999h", "a number and a unit"},
		{"acquire e --candidate a --wait 30", "a number and a unit, such as 30s or 5m, or forever"},
		{"acquire e --candidate a --wait -1s", "from 0s to 24h0m0s, or forever"},
		{"acquire e --candidate a --wait 25h", "from 0s to 24h0m0s, or forever"},
		{"acquire e --candidate a --metadata [1]", "must be a JSON object"},
		{"acquire e --candidate a --metadata {", "must be a JSON object"},
		{"acquire e --candidate a --key short", "--key: a key is 32 random bytes"},
		{"acquire e --candidate a --key x --key-file y", "not both"},
		{"acquire e --candidate a --key-file /nowhere/key", "no such file"},
		{"acquire e --candidate a --priority high", "must be an integer from -2147483648 to 2147483647, or cksum"},
		{"acquire e --candidate a --priority 2147483648", "to 2147483647, or cksum"},
		{"acquire e --candidate a --load -1", "must be an integer from 0 to 2147483647"},
		{"acquire e --candidate a --capabilities gpu,,eu", "empty element"},
		{"acquire e --candidate a --capabilities g/pu", "must be names of 1 to 64"},
		{"acquire e --candidate a --role follower", "must be candidate or witness"},
		{"run e --await-followers 0 -- true", "must be an integer, 1 or more"},
		{"run e --await-followers 10001 -- true", "must be 10000 at most"},
		{"members", "one argument"},
		{"members A", "a-z, 0-9"},
		{"join e", "two arguments, the election's name and the member's id, but got 1"},
		{"join e a/b", "a candidate's id"},
		{"join e a --role leader", "must be follower, worker or witness"},
		{"join e a --ttl 9s", "must be from 10s to 5m0s"},
		{"acquire e --candidate a --via orders.eu", "must be ELECTION:TOKEN, or PEER/ELECTION:TOKEN"},
		{"acquire e --candidate a --via orders.eu:0", "an integer from 1"},
		{"acquire e --candidate a --via a,b/orders.eu:1", "is not the name of a peer"},
		{"acquire e --candidate a --via Orders:1", "a-z, 0-9"},
		{"hand-over e --candidate a --token 1 --within 11m", "must be from 1s to 10m"},
		{"hand-over e --candidate a --token 1 --to a/b", "a candidate's id"},
		{"hand-over e --candidate a --token 1", "the key is missing; set REGENT_KEY"},
		{"ready e --candidate a", "the key is missing; set REGENT_KEY"},
		{"yield e --candidate a", "--token is missing; give it, or set REGENT_TOKEN"},
		{"delegate e --candidate a --token 1", "--child is missing"},
		{"delegate e --candidate a --token 1 --child c --depth -1", "an integer, 0 or more"},
		{"delegate e --candidate a --token 1 --child c --budget some", "an integer, 0 or more"},
		{"checkpoint", "checkpoint needs a command: get, put"},
		{"checkpoint show e", `checkpoint has no command "show", only get, put`},
		{"checkpoint get", "one argument"},
		{"checkpoint put e --candidate a --token 1 --key " + testKey(1) + " --file /nowhere/data", "no such file"},
		{"checkpoint put e --candidate a --token 1 --key " + testKey(1) + " --file f --uri u:v", "none of the others can be"},
		{"checkpoint put e --candidate a --token 1 --key-file -", "cannot both come from standard input"},
		{"checkpoint put e --candidate a --token 1 --key " + testKey(1), "the data is not JSON"},
		{"journal", "journal needs a command: append, read, follow, snapshot"},
		{"journal append e --candidate a --token 1 --after -1", "an index is an integer, 0 or more"},
		{"journal read e --limit 0", "must be an integer, 1 or more"},
		{"journal snapshot e --file f", "--file puts a snapshot; say for which entries it stands, with --up-to"},
		{"journal snapshot e --up-to 0", "the index of an entry, 1 or more"},
		{"journal snapshot e --up-to 1", "--candidate is missing; give it, or set REGENT_CANDIDATE"},
		{"serve --peer eu", `"eu" is not NAME=URL`},
		{"serve --peer eu=https://a --peer eu=https://b", "eu is named twice"},
		{"serve --peer eu=http://example.com", "--peer eu: "},
		{"serve --peer eu=ftp://example.com", "begin with http:// or https://"},
		{"serve --peer-audience eu=a", "names eu, which is no peer; give --peer eu=URL, too"},
		{"serve --peer eu=https://a --peer-audience eu=a --peer-token-file eu=f", "not both"},
		{"configure e --policy {\"quorum\":{\"electorate\":[]}}", "policy.quorum.electorate names 1 to 31 members"},
		{"renew e --candidate a --token 1", "the key is missing; set REGENT_KEY"},
		{"renew e --candidate a --key k", "--token is missing; give it, or set REGENT_TOKEN"},
		{"release e --candidate a --token 1", "the key is missing; set REGENT_KEY"},
		{"check e", "--token is missing"},
		{"check e --token 0", "an integer from 1"},
		{"check e --token -1", "an integer from 1"},
		{"check e --token 1.5", "an integer from 1"},
		{"check e --token 9007199254740992", "to 9007199254740991"},
		{"check e --token 99999999999999999999", "to 9007199254740991"},
		{"history e --after -1", "0 or more"},
		{"watch", "watch takes one argument, the election's name, or --all"},
		{"watch a b", "one argument"},
		{"watch A", "a-z, 0-9"},
		{"watch e --all", `no arguments, but got "e"`},
		{"watch e --prefix e", "--prefix is for --all"},
		{"watch e --count 0", "1 or more"},
		{"watch e --count some", "1 or more"},
		{"watch e --after=", "must not be empty"},
		{"watch e --after x", "after must be the last revision"},
		{"watch --all --after é", "after must be the cursor of the last item"},
		{"delete e --if-revision 0", "1 or more"},
		{"apply", "give -f FILE, -f - for standard input, or --schema"},
		{"apply elections.yaml", `no arguments, but got "elections.yaml"`},
		{"apply -f x --schema", "--schema is for no file"},
		{"apply -f /nowhere/elections.yaml", "-f: stat /nowhere/elections.yaml: no such file"},
		{"apply --file=", "-f: must not be empty"},
		{"apply -f -", "standard input:1: the file is empty"},
		{"apply -f - --prune=", "would delete all elections that are in no file; name how theirs begin"},
		{"apply -f - --prune A", "a-z, 0-9"},
		{"apply -f - --prune-held", "--prune-held is for --prune"},
		{"configure e --if-revision x", "1 or more"},
		{"configure e --lock-delay -1s", "from 0s to 24h"},
		{"list --output yaml", "table or json"},
		{"list --timeout 0s", "from 1ms"},
		{"list --timeout -1s", "from 1ms"},
		{"serve --store file:~/leases", "the shell expands ~ only at the beginning of a word; write the folder in full, as in file:$HOME/"},
		{"list --server 127.0.0.1:8080", "--server or REGENT_SERVER: the server's address must begin with http:// or https://, as in http://127.0.0.1:8080"},
		{"list --server ftp://example.com", "begin with http:// or https://"},
		{"list --server http://", "has no host"},
		{"configure e --max-lease 0s", "must be from 1s to 24h0m0s; or none"},
		{"list --server=", "must not be empty"},
		{"list --server http://127.0.0.1:1/?a=b", "must not contain ? or #"},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			r := regent(t, nil, c.args).want(t, exitUsage)
			lines := strings.Split(strings.TrimSuffix(r.err, "\n"), "\n")
			if r.out != "" || len(lines) != 2 || !strings.Contains(lines[0], c.want) {
				t.Errorf("stdout %q, stderr\n%swant one line with %q, and a hint", r.out, r.err, c.want)
			}
			if hint := regexp.MustCompile(`^Run 'regent( [a-z-]+){0,2} --help' for usage\.$`); !hint.MatchString(lines[len(lines)-1]) {
				t.Errorf("the last line is %q, want the hint", lines[len(lines)-1])
			}
		})
	}
}

func TestAWrongKeyIsNotRepeated(t *testing.T) {
	t.Parallel()
	const secret = "almost-a-key"
	for _, r := range []result{
		regent(t, nil, "acquire e --candidate a --key "+secret),
		regent(t, []string{"REGENT_KEY=" + secret}, "acquire e --candidate a"),
		regentReading(t, secret, nil, "acquire e --candidate a --key-file -"),
	} {
		r.want(t, exitUsage)
		if strings.Contains(r.out+r.err, secret) {
			t.Errorf("the key is in the output: %s%s", r.out, r.err)
		}
	}
}

func TestAPasswordInAServersAddressIsNotRepeated(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for _, address := range []string{"http://me:hunter2@host", "me:hunter2@host", "http://me:hunter2/x@host", "http://me:hunter2%@host"} {
		for _, r := range []result{
			regent(t, nil, "list --server "+address),
			regent(t, nil, "list --output json --server "+address),
			regent(t, []string{"REGENT_SERVER=" + address}, "status e"),
		} {
			if r.want(t, exitUsage); strings.Contains(r.out+r.err, secret) {
				t.Errorf("the password is in the output: %s%s", r.out, r.err)
			}
		}
	}
}

func TestHelpIsForStandardOutputAndHasTheExitCodes(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"", "--help", "help"} {
		r := regent(t, nil, args).want(t, exitDone)
		for _, want := range []string{"2  the command line", "3  another candidate", "4  the lease is lost", "5  the server", "6  the wait", "7  'regent apply --dry-run'", "8  'regent apply'"} {
			if !strings.Contains(r.out, want) || r.err != "" {
				t.Errorf("regent %s: stderr %q, stdout has no %q:\n%s", args, r.err, want, r.out)
			}
		}
	}
}

func TestHelpDoesNotShowTheEnvironment(t *testing.T) {
	t.Parallel()
	env := []string{"REGENT_KEY=" + testKey(1), "REGENT_CANDIDATE=someone"}
	if r := regent(t, env, "acquire --help").want(t, exitDone); strings.Contains(r.out, testKey(1)) || strings.Contains(r.out, "someone") {
		t.Error(r.out)
	}
}

func TestVersionIsKnown(t *testing.T) {
	t.Parallel()
	if r := regent(t, nil, "version").want(t, exitDone); !regexp.MustCompile(`^regent \S+ (\(\S+\) )?go1\.\S+ \w+/\w+\n$`).MatchString(r.out) {
		t.Errorf("%q", r.out)
	}
	if r := regent(t, nil, "version --output json").want(t, exitDone); !strings.HasPrefix(r.out, `{"version":"`) {
		t.Errorf("%q", r.out)
	}
}

package kubernetes

import (
	"bufio"
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/store/memory"
	"regent/test/process"
)

// programs makes a folder with regent and kubectl. Another kubectl than that of go.mod may be named
// by KUBECTL.
func programs(t *testing.T) (bin string) {
	t.Helper()
	kubectl := os.Getenv("KUBECTL")
	if kubectl == "" {
		kubectl = process.Program{Package: "./kubectl"}.Path(t)
	}
	bin = t.TempDir()
	for name, path := range map[string]string{"regent": process.Regent.Path(t), "kubectl": kubectl} {
		require.NoError(t, os.Symlink(path, filepath.Join(bin, name)))
	}
	return bin
}

// session is a user of kubectl, and a server that can be stopped and started again on one store.
type session struct {
	*testing.T
	dir, address string // where kubectl is run, and the server serves
	url          string
	env          []string
	server       *process.Process
}

func newSession(t *testing.T, bin string) *session {
	t.Helper()
	address, err := process.Address()
	require.NoError(t, err)
	s := &session{T: t, dir: t.TempDir(), address: address, url: "http://" + address}
	s.env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + s.dir, "KUBECONFIG=" + filepath.Join(s.dir, "kubeconfig")}
	return s
}

func (s *session) start() {
	s.Helper()
	s.server = process.Serve(s.T, process.Regent.Command(s.T, "serve", "--kubernetes", "--store", "file:"+filepath.Join(s.dir, "store"), "--listen", s.address))
}

func (s *session) stop() {
	s.Helper()
	s.server.End(s.T, os.Interrupt)
}

func (s *session) restart() {
	s.Helper()
	s.stop()
	s.start()
}

// file writes a file that commands may name.
func (s *session) file(name, text string) {
	s.Helper()
	require.NoError(s, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600))
}

// command is a command line of the shell.
func (s *session) command(ctx context.Context, line string) *exec.Cmd {
	c := exec.CommandContext(ctx, "sh", "-c", "exec "+line)
	c.Dir, c.Env = s.dir, append(os.Environ(), s.env...)
	return c
}

// say runs a command line, and returns all that it prints.
func (s *session) say(line string) (string, error) {
	out, err := s.command(s.Context(), line).CombinedOutput()
	return string(out), err
}

// does runs a command that must do well and print the texts.
func (s *session) does(line string, texts ...string) string {
	s.Helper()
	out, err := s.say(line)
	s.has(line, out, err, texts)
	if err != nil {
		s.Errorf("%s: %v: %s", line, err, out)
	}
	return out
}

// fails runs a command that must fail and print the texts.
func (s *session) fails(line string, texts ...string) {
	s.Helper()
	out, err := s.say(line)
	s.has(line, out, err, texts)
	if err == nil {
		s.Errorf("%s does not fail: %s", line, out)
	}
}

func (s *session) has(line, out string, err error, texts []string) {
	s.Helper()
	for _, text := range texts {
		if !strings.Contains(spaces.ReplaceAllString(out, " "), text) {
			s.Errorf("%s: no %q in what it prints (%v):\n%s", line, text, err, out)
		}
	}
}

// background begins a command, and returns the next line that it prints. "" is its end.
func (s *session) background(line string) (next func() string) {
	s.Helper()
	c := s.command(s.Context(), line)
	out, err := c.StdoutPipe()
	require.NoError(s, err)
	c.Stderr = c.Stdout
	require.NoError(s, c.Start())
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(out); in.Scan(); {
			lines <- in.Text()
		}
		c.Wait() // its exit code is told by what it prints
	}()
	return func() string { return spaces.ReplaceAllString(<-lines, " ") }
}

var (
	spaces = regexp.MustCompile(` +`)
	// volatile is what differs from run to run: times, durations, versions.
	volatile = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z|"\d{16}"|\b\d+ ms|\b(\d+m)?\d+s\b| from default namespace`)
)

// alike makes what two runs print equal.
func alike(out string) string {
	var all []string
	for line := range strings.SplitSeq(strings.TrimSpace(out), "\n") {
		all = append(all, strings.TrimSpace(spaces.ReplaceAllString(volatile.ReplaceAllString(line, ""), " ")))
	}
	return strings.Join(all, "\n")
}

// block returns the first block of the README in a language.
func block(t *testing.T, language string) string {
	t.Helper()
	text, err := os.ReadFile("../../httpapi/kubernetes/README.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "```"+language+"\n")
	body, _, closed := strings.Cut(rest, "```\n")
	if !found || !closed {
		t.Fatalf("the README has no block of %s", language)
	}
	return body
}

func TestKubectl(t *testing.T) {
	t.Parallel()
	bin := programs(t)
	for name, do := range map[string]func(*session){
		"says what the README shows":                  (*session).asInTheReadme,
		"reads and writes":                            (*session).readsAndWrites,
		"is refused clearly":                          (*session).isRefused,
		"watches and waits over a restart":            (*session).watches,
		"identifies itself by a kubeconfig's command": (*session).identifiesItself,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSession(t, bin)
			s.start()
			if out, err := s.say("regent kubeconfig --server " + s.url + " >kubeconfig"); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			do(s)
		})
	}
}

func (s *session) asInTheReadme() {
	s.file("lease.yaml", block(s.T, "yaml"))
	for step := range strings.SplitSeq(block(s.T, "console"), "$ ") {
		line, want, ok := strings.Cut(step, "\n")
		if !ok {
			continue
		}
		if got, _ := s.say(line); alike(got) != alike(want) {
			s.Errorf("%s prints\n%s\nand the README shows\n%s", line, got, want)
		}
	}
}

// claim is a Lease in a file.
func claim(name, holder string) string {
	return fmt.Sprintf(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":%q},"spec":{"holderIdentity":%q,"leaseDurationSeconds":3600}}`, name, holder)
}

func (s *session) readsAndWrites() {
	s.file("a.json", claim("a", "ann"))
	s.file("free.yaml", "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: free, labels: {app: x}}\n")
	s.does("kubectl create -f a.json", "lease.coordination.k8s.io/a created")
	s.does("kubectl create -f free.yaml", "Warning: labels and annotations belong to the leader", "lease.coordination.k8s.io/free created")
	s.does("kubectl get leases", "NAME HOLDER TOKEN EXPIRES IN AGE", "\na ann 1 ", "\nfree 0")
	s.does("kubectl get leases -A", "NAMESPACE NAME HOLDER TOKEN EXPIRES IN AGE", "\ndefault a ann 1 ")
	s.does("kubectl get leases -o name", "lease.coordination.k8s.io/a\nlease.coordination.k8s.io/free\n")
	s.does("kubectl get lease a -o jsonpath='{.spec.holderIdentity} {.metadata.annotations}'", `ann {"regent/fencing-token":"1"}`)
	s.does("kubectl get leases --field-selector metadata.name=free -o name", "lease.coordination.k8s.io/free\n")
	s.does("kubectl get leases -l app", "No resources found")
	s.does("kubectl get lease a -o yaml", "holderIdentity: ann\n", "leaseDurationSeconds: 3600\n", "leaseTransitions: 0\n", `regent/fencing-token: "1"`)
	s.does("kubectl describe lease a", "Name: a\n", "Holder Identity: ann\n", "Lease Transitions: 0\n", "Annotations: regent/fencing-token: 1\n")
	s.does("kubectl explain lease.spec.holderIdentity", "KIND: Lease", "Set it to claim or renew the Lease")
	s.does("kubectl api-resources", "leases coordination.k8s.io/v1 true Lease")
	s.does("kubectl label lease a app=y", "labeled")
	s.does("kubectl annotate lease a note=z", " annotate")
	s.does("kubectl get leases -l app=y -o name", "lease.coordination.k8s.io/a\n")
	s.does(`kubectl patch lease a --type merge -p '{"spec":{"holderIdentity":""}}'`, "patched")
	s.does(`kubectl patch lease a -p '{"spec":{"holderIdentity":"bob","leaseDurationSeconds":3600}}'`, "patched") // strategic
	s.does("kubectl get lease a", "\na bob 2 ")
	s.does("kubectl get lease a -o json >b.json")
	s.does("kubectl replace -f b.json", "replaced")
	s.does("kubectl delete lease a", `"a" deleted`)
	s.does("kubectl get leases -o name", "lease.coordination.k8s.io/free\n")
	s.file("c.json", claim("c", "ann"))
	s.does("kubectl apply -f c.json", "lease.coordination.k8s.io/c created")
	s.does("kubectl apply -f c.json", "lease.coordination.k8s.io/c unchanged")
	s.does("kubectl delete leases --all", `"c" deleted`, `"free" deleted`)
	s.does("kubectl get leases", "No resources found in default namespace.")
}

func (s *session) isRefused() {
	s.file("a.json", claim("a", "ann"))
	s.file("other.json", claim("a", "bob"))
	s.file("unknown.json", strings.Replace(claim("new", "ann"), `"spec":{`, `"spec":{"holder":"x",`, 1))
	s.file("pod.json", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[]}}`)
	s.file("strategy.json", strings.Replace(claim("new", "ann"), `"spec":{`, `"spec":{"strategy":"OldestEmulationVersion",`, 1))
	s.does("kubectl create -f a.json", "created")
	s.fails("kubectl create -f other.json", `(AlreadyExists): `, `leases.coordination.k8s.io "a" already exists`)
	s.fails("kubectl apply -f other.json", `"ann" holds the lease for another`)
	s.fails("kubectl replace -f other.json", "(Conflict)", `"ann" holds the lease for another`)
	s.fails(`kubectl patch lease a --type json -p '[]'`, "application/json-patch+json is not supported", "application/merge-patch+json")
	s.fails("kubectl apply --server-side -f a.json", "Server-side apply not available")
	s.fails("kubectl create -f unknown.json", "(BadRequest)", `unknown field "spec.holder"`)
	s.does("kubectl create --validate=warn -f unknown.json", `Warning: unknown field "spec.holder"`, "created")
	s.fails("kubectl create --dry-run=server -f other.json", "there is no dry run here")
	s.fails("kubectl create -f strategy.json", "is invalid: spec.strategy")
	s.fails("kubectl create -f pod.json", `no matches for kind "Pod" in version "v1"`)
	s.fails("kubectl get pods", `the server doesn't have a resource type "pods"`)
	s.fails("kubectl get lease nope", `(NotFound): leases.coordination.k8s.io "nope" not found`)
	s.fails("kubectl get lease a -n Bad_Name", `"Bad_Name" is not the name of a namespace`)
	s.fails("kubectl get leases --field-selector spec.holderIdentity=x", "unable to parse the field selector")
	s.fails("kubectl scale lease a --replicas=2", "the server could not find the requested resource")
	s.fails("kubectl get --raw /version", "(NotFound)")
	s.does("kubectl get lease a", "\na ann 1 ")
}

func (s *session) watches() {
	s.file("a.json", claim("a", "ann"))
	s.file("b.json", claim("b", "ann"))
	s.does("kubectl create -f a.json")
	const free, bob = `kubectl patch lease a --type merge -p '{"spec":{"holderIdentity":""}}'`, `kubectl patch lease a --type merge -p '{"spec":{"holderIdentity":"bob"}}'`
	all, one := s.background("kubectl get leases -w"), s.background("kubectl get lease a -w")
	expect := func(next func() string, want string) {
		s.Helper()
		for line := next(); !strings.HasPrefix(line, want); line = next() {
			if line == "" {
				s.Fatalf("it ends, and never prints %q", want)
			}
		}
	}
	for _, next := range []func() string{all, one} {
		expect(next, "NAME HOLDER TOKEN EXPIRES IN AGE")
		expect(next, "a ann 1 ")
	}
	s.does(free)
	s.does(bob)
	for _, next := range []func() string{all, one} {
		expect(next, "a bob 2 ")
	}
	s.does("kubectl create -f b.json")
	expect(all, "b ann 1 ")
	s.does("kubectl delete lease b")
	expect(all, "b ") // as it was last
	waits := s.background("kubectl wait --for=jsonpath='{.spec.holderIdentity}'=eve lease/a --timeout=1h")
	s.does("kubectl wait --for=jsonpath='{.spec.holderIdentity}'=bob lease/a --timeout=1h", "lease.coordination.k8s.io/a condition met")
	s.restart()
	for _, next := range []func() string{all, one} { // kubectl ends with its connection, at any API server
		for next() != "" {
		}
	}
	again := s.background("kubectl get lease a -w")
	expect(again, "a bob 2 ")
	s.does(free)
	expect(again, "a 2")
	s.does(strings.Replace(bob, "bob", "eve", 1))
	expect(again, "a eve 3 ")
	expect(waits, "lease.coordination.k8s.io/a condition met")
	expect(waits, "")
	gone := s.background("kubectl wait --for=delete lease/a --timeout=1h")
	s.does("kubectl delete lease a --wait=false")
	for line := gone(); line != ""; line = gone() {
		if strings.Contains(line, "error") {
			s.Errorf("the wait for the deletion: %s", line)
		}
	}
	s.stop()
	s.fails("kubectl get leases", "was refused")
}

// identifiesItself runs kubectl with a kubeconfig for an audience, against a server that wants the
// token of the metadata server.
func (s *session) identifiesItself() {
	token := "e30." + "eyJleHAiOjQxMDI0NDQ4MDB9" + ".c2ln" // it expires in 2100
	asked := make(chan string, 100)
	metadata := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Query().Get("audience")
		w.Header().Set("Metadata-Flavor", "Google")
		fmt.Fprint(w, token)
	}))
	s.Cleanup(metadata.Close)
	api := api(s.T, memory.New(memory.Config{}))
	guarded := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			http.Error(w, "", http.StatusUnauthorized)
			return
		}
		api.ServeHTTP(w, r)
	}))
	s.Cleanup(guarded.Close)
	s.file("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: guarded.Certificate().Raw})))
	s.env = append(s.env, "GCE_METADATA_HOST="+strings.TrimPrefix(metadata.URL, "http://"), "SSL_CERT_FILE="+filepath.Join(s.dir, "ca.pem"))
	s.does("regent kubeconfig --server " + guarded.URL + " >kubeconfig")
	s.fails("kubectl get leases")
	s.does("regent kubeconfig --server " + guarded.URL + " --audience https://regent.test >kubeconfig")
	s.does("kubectl get leases", "No resources found")
	if got := <-asked; got != "https://regent.test" {
		s.Errorf("the token is for %q", got)
	}
	if text, err := os.ReadFile(filepath.Join(s.dir, "kubeconfig")); err != nil || strings.Contains(string(text), token) {
		s.Errorf("the kubeconfig is %s, %v", text, err)
	}
}

package test

import (
	"bytes"
	"crypto/sha256"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"regent/test/machine"
	"regent/test/process"
)

// dockerfile returns the lines of the image's Dockerfile, each joined with its continuation.
func dockerfile(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../cmd/regent/Dockerfile")
	require.NoError(t, err)
	var lines []string
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", "")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
	}
	return lines
}

func TestTheImageIsPinnedAndHasNoShellAndNoRoot(t *testing.T) {
	t.Parallel()
	lines := dockerfile(t)
	from := regexp.MustCompile(`^FROM (--platform=\$BUILDPLATFORM )?\S+:\S+@sha256:[0-9a-f]{64}( AS [a-z]+)?$`)
	last := 0
	for i, line := range lines {
		if strings.HasPrefix(line, "FROM ") {
			last = i
			if !from.MatchString(line) {
				t.Errorf("%s: an image is named by tag and digest", line)
			}
		}
		if regexp.MustCompile(`^(ADD|MAINTAINER|ONBUILD|SHELL|HEALTHCHECK) `).MatchString(line) || strings.Contains(line, "curl") || strings.Contains(line, "apt") {
			t.Errorf("%s: the image may have only files from this repository and its modules", line)
		}
	}
	shipped := lines[last:]
	if !strings.Contains(shipped[0], "distroless/static") || !strings.Contains(shipped[0], ":nonroot@") {
		t.Errorf("%s: the shipped image must have no shell, and a user that is not root", shipped[0])
	}
	for _, want := range []string{"USER 65532:65532", `ENTRYPOINT ["/regent"]`, `CMD ["serve"]`, "COPY --from=build /regent /regent"} {
		if !slices.Contains(shipped, want) {
			t.Errorf("the shipped stage lacks %s", want)
		}
	}
	for _, line := range shipped {
		if strings.HasPrefix(line, "RUN ") || strings.HasPrefix(line, "VOLUME ") || strings.HasPrefix(line, "ENV ") {
			t.Errorf("%s: nothing runs, and nothing is written, in the shipped stage", line)
		}
	}
}

// flagsOf are the flags of a build that determine its bytes.
var flagsOf = []string{"CGO_ENABLED=0", "-trimpath", "-tags=disable_grpc_modules,grpcnotrace", "-buildvcs=false", "-s", "-w", "-buildid=", "main.version="}

func TestKoBuildsWhatTheDockerfileBuilds(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../.ko.yaml")
	require.NoError(t, err)
	var ko struct {
		DefaultBaseImage string `yaml:"defaultBaseImage"`
		Builds           []struct {
			ID, Main            string
			Env, Flags, Ldflags []string
		}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(&ko))
	lines := dockerfile(t)
	if !slices.Contains(lines, "FROM "+ko.DefaultBaseImage) {
		t.Errorf("ko's base image is %s, the Dockerfile's another", ko.DefaultBaseImage)
	}
	if len(ko.Builds) != 1 || ko.Builds[0].Main != "./cmd/regent" {
		t.Fatalf("ko builds %+v", ko.Builds)
	}
	b := ko.Builds[0]
	koFlags := strings.Join(slices.Concat(b.Env, b.Flags, b.Ldflags), " ")
	dockerFlags := strings.Join(lines, " ")
	for _, flag := range flagsOf {
		if !strings.Contains(koFlags, flag) || !strings.Contains(dockerFlags, flag) {
			t.Errorf("%s is missing: ko has %q", flag, koFlags)
		}
	}
}

// The same commit gives the same bytes: it is built twice, in two folders, the second time with an
// empty cache.
func TestTheBinaryIsTheSameWhereverItIsBuilt(t *testing.T) {
	machine.LongOnly(t, "a build of everything takes a minute")
	t.Parallel()
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	require.NoError(t, os.CopyFS(elsewhere, os.DirFS("..")))
	build := func(dir string, env ...string) [sha256.Size]byte {
		t.Helper()
		binary := filepath.Join(t.TempDir(), "regent")
		cmd := exec.CommandContext(within(t, 10*time.Minute), "go", "build",
			"-trimpath", "-tags=disable_grpc_modules,grpcnotrace", "-buildvcs=false", "-ldflags", "-s -w -buildid= -X main.version=v1", "-o", binary, "./cmd/regent")
		cmd.Dir, cmd.Env = dir, process.Environ(append(env, "CGO_ENABLED=0", "GOFLAGS=")...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		b, err := os.ReadFile(binary)
		require.NoError(t, err)
		if bytes.Contains(b, []byte(dir+"/")) {
			t.Errorf("%s is in the binary", dir)
		}
		return sha256.Sum256(b)
	}
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	here, there := build(root), build(elsewhere, "GOCACHE="+t.TempDir())
	if here != there {
		t.Errorf("built twice, it is %x and %x", here, there)
	}
}

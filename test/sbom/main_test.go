package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// testBinary describes the binary of this test, which has modules linked as any other.
func testBinary(t *testing.T) artifact {
	t.Helper()
	name, err := os.Executable()
	require.NoError(t, err)
	a, err := readArtifact(name, "v1.2.3")
	require.NoError(t, err)
	return a
}

// linked returns the modules of this test as package URLs, without the standard library.
func linked(t *testing.T) (all []string) {
	t.Helper()
	info, ok := debug.ReadBuildInfo()
	if !ok || len(info.Deps) == 0 {
		t.Fatal("this test has no modules")
	}
	for _, d := range info.Deps {
		all = append(all, "pkg:golang/"+d.Path+"@"+d.Version)
	}
	return all
}

func read[T any](t *testing.T, document any) (v T) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "document.json")
	require.NoError(t, write(name, document))
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &v))
	return v
}

var day = time.Date(2026, 11, 28, 4, 0, 0, 0, time.FixedZone("", 3600))

func TestSBOMIsValidSPDXAndHasEveryLinkedModule(t *testing.T) {
	t.Parallel()
	a := testBinary(t)
	d := read[struct {
		SPDXVersion, DataLicense, SPDXID, Name, DocumentNamespace string
		CreationInfo                                              struct {
			Created  string
			Creators []string
		}
		Packages []struct {
			SPDXID, Name, VersionInfo, DownloadLocation string
			FilesAnalyzed                               *bool
			Checksums                                   []struct{ Algorithm, ChecksumValue string }
			ExternalRefs                                []struct{ ReferenceCategory, ReferenceType, ReferenceLocator string }
		}
		Relationships []struct{ SPDXElementID, RelationshipType, RelatedSPDXElement string }
	}](t, a.spdx(day))
	if d.SPDXVersion != "SPDX-2.3" || d.DataLicense != "CC0-1.0" || d.SPDXID != "SPDXRef-DOCUMENT" || d.Name == "" ||
		!strings.HasPrefix(d.DocumentNamespace, "urn:") || strings.Contains(d.DocumentNamespace, "#") ||
		d.CreationInfo.Created != "2026-11-28T03:00:00Z" || !strings.HasPrefix(d.CreationInfo.Creators[0], "Tool: ") {
		t.Errorf("the document is %+v", d)
	}
	ids := map[string]bool{d.SPDXID: true}
	var purls []string
	for _, p := range d.Packages {
		if ids[p.SPDXID] || !regexp.MustCompile(`^SPDXRef-[a-zA-Z0-9.-]+$`).MatchString(p.SPDXID) {
			t.Errorf("package %s has the id %q", p.Name, p.SPDXID)
		}
		ids[p.SPDXID] = true
		if p.Name == "" || p.VersionInfo == "" || p.DownloadLocation == "" || p.FilesAnalyzed == nil || *p.FilesAnalyzed {
			t.Errorf("package %+v", p)
		}
		for _, r := range p.ExternalRefs {
			purls = append(purls, r.ReferenceLocator)
		}
	}
	if c := d.Packages[0].Checksums; len(c) != 1 || c[0].Algorithm != "SHA256" || c[0].ChecksumValue != a.sha256 || len(a.sha256) != 64 {
		t.Errorf("the binary has the checksums %v", c)
	}
	if want := append([]string{"pkg:golang/std@" + strings.TrimPrefix(a.goVersion, "go")}, linked(t)...); !slices.Equal(purls, want) {
		t.Errorf("modules (-linked +in the SBOM)\n%s", cmp.Diff(want, purls))
	}
	related := map[string]bool{}
	for _, r := range d.Relationships {
		if !ids[r.SPDXElementID] || !ids[r.RelatedSPDXElement] {
			t.Errorf("a relationship of unknown packages: %+v", r)
		}
		related[r.RelatedSPDXElement] = true
	}
	if len(related) != len(d.Packages) {
		t.Errorf("of %d packages, %d are related", len(d.Packages), len(related))
	}
}

func TestProvenanceSaysFromWhatAndHowTheBinaryWasBuilt(t *testing.T) {
	t.Parallel()
	a := testBinary(t)
	b, err := readBuild("../../.ko.yaml", a.version, "arm64")
	require.NoError(t, err)
	commit := strings.Repeat("c", 40)
	type resource struct {
		Name, URI string
		Digest    map[string]string
	}
	s := read[struct {
		Type          string `json:"_type"`
		Subject       []resource
		PredicateType string
		Predicate     struct {
			BuildDefinition struct {
				BuildType            string
				ExternalParameters   map[string]string
				InternalParameters   struct{ Command, Environment []string }
				ResolvedDependencies []resource
			}
			RunDetails struct{ Builder struct{ ID string } }
		}
	}](t, a.provenance(b, source{commit: commit, origin: "https://git.test/regent"}))
	p := s.Predicate
	if s.Type != "https://in-toto.io/Statement/v1" || s.PredicateType != "https://slsa.dev/provenance/v1" ||
		len(s.Subject) != 1 || s.Subject[0].Digest["sha256"] != a.sha256 ||
		p.BuildDefinition.BuildType == "" || p.RunDetails.Builder.ID == "" || p.BuildDefinition.ExternalParameters["commit"] != commit {
		t.Errorf("the statement is %+v", s)
	}
	how := strings.Join(append(p.BuildDefinition.InternalParameters.Environment, p.BuildDefinition.InternalParameters.Command...), " ")
	for _, want := range []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=arm64", "-trimpath", "-buildvcs=false", "-buildid= -X main.version=v1.2.3", "./cmd/regent"} {
		if !strings.Contains(how, want) {
			t.Errorf("it was built by %s, without %s", how, want)
		}
	}
	from := p.BuildDefinition.ResolvedDependencies
	if from[0].URI != "git+https://git.test/regent@"+commit || from[0].Digest["gitCommit"] != commit {
		t.Errorf("the source is %+v", from[0])
	}
	var uris []string
	for _, m := range from[2:] { // after the source and the standard library
		uris = append(uris, m.URI)
		if !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(m.Digest["dirHash"]) {
			t.Errorf("%s has the digests %v", m.URI, m.Digest)
		}
	}
	if diff := cmp.Diff(linked(t), uris); diff != "" {
		t.Errorf("modules (-linked +in the provenance)\n%s", diff)
	}
}

// A statement about source that is in no commit would be false.
func TestSourceThatIsInNoCommitIsSeen(t *testing.T) {
	t.Chdir(t.TempDir())
	git := func(args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q")
	if _, err := readSource(); err == nil {
		t.Error("without a commit there is no error")
	}
	require.NoError(t, os.WriteFile("a", nil, 0o600))
	git("add", "a")
	git("commit", "-q", "-m", "a")
	s, err := readSource()
	if err != nil || s.dirty || len(s.commit) != 40 || s.at.IsZero() || s.origin != "" {
		t.Errorf("a clean tree is %+v, %v", s, err)
	}
	require.NoError(t, os.WriteFile("b", nil, 0o600))
	if s, err := readSource(); err != nil || !s.dirty {
		t.Errorf("with a new file it is %+v, %v", s, err)
	}
}

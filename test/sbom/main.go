// Command sbom builds the binary that the image ships, as .ko.yaml and the Dockerfile do, and
// writes beside it what it is made of and how:
//
//	regent               for linux
//	regent.spdx.json     SBOM: SPDX 2.3
//	regent.intoto.json   provenance: an in-toto statement with SLSA's predicate v1, not signed
//
// All three are the same for each build of a commit by the same Go. Without a commit that has all
// of the source there is no provenance: it writes the other two, and fails.
package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

func main() {
	dir := flag.String("dir", ".build/shipped", "the `folder` to write to")
	version := flag.String("version", "unknown", "the version of the binary")
	arch := flag.String("arch", runtime.GOARCH, "the architecture, as Go names it")
	flag.Parse()
	if err := run(*dir, *version, *arch); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(dir, version, arch string) error {
	b, err := readBuild(".ko.yaml", version, arch)
	if err != nil {
		return err
	}
	binary := filepath.Join(dir, "regent")
	if err := b.build(binary); err != nil {
		return err
	}
	s, err := readSource()
	if err != nil {
		return err
	}
	a, err := readArtifact(binary, version)
	if err != nil {
		return err
	}
	if err := write(binary+".spdx.json", a.spdx(s.at)); err != nil {
		return err
	}
	provenance := binary + ".intoto.json"
	if s.dirty {
		return errors.Join(fmt.Errorf("%s is not written: the source has changes that are in no commit; commit them", provenance), os.RemoveAll(provenance))
	}
	if err := write(provenance, a.provenance(b, s)); err != nil {
		return err
	}
	fmt.Printf("%s is not signed; to sign it: cosign sign-blob --bundle %[1]s.sigstore.json %[1]s\n", provenance)
	return nil
}

// build is how the binary is built.
type build struct {
	Main                string
	Env, Flags, Ldflags []string
}

// readBuild reads it from the configuration of ko.
func readBuild(name, version, arch string) (build, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return build{}, err
	}
	var ko struct{ Builds []build }
	if err := yaml.Unmarshal(bytes.ReplaceAll(text, []byte("{{.Env.VERSION}}"), []byte(version)), &ko); err != nil {
		return build{}, fmt.Errorf("%s: %w", name, err)
	}
	if len(ko.Builds) != 1 {
		return build{}, fmt.Errorf("%s has %d builds; this command makes one", name, len(ko.Builds))
	}
	b := ko.Builds[0]
	b.Env = append(b.Env, "GOOS=linux", "GOARCH="+arch)
	return b, nil
}

func (b build) command(binary string) []string {
	args := append([]string{"go", "build"}, b.Flags...)
	return append(args, "-ldflags", strings.Join(b.Ldflags, " "), "-o", binary, b.Main)
}

func (b build) build(binary string) error {
	args := b.command(binary)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(append(os.Environ(), "GOFLAGS="), b.Env...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run()
}

// source is the source of the binary.
type source struct {
	commit, origin string // origin is "" if git knows none
	at             time.Time
	dirty          bool
}

func readSource() (s source, err error) {
	git := func(args ...string) string {
		out, failed := exec.Command("git", args...).Output()
		if failed != nil {
			err = cmp.Or(err, fmt.Errorf("git %s: %w", strings.Join(args, " "), failed))
		}
		return strings.TrimSpace(string(out))
	}
	s.commit, s.dirty = git("rev-parse", "HEAD"), git("status", "--porcelain") != ""
	at := git("show", "-s", "--format=%cI", "HEAD")
	s.origin = git("config", "--default", "", "remote.origin.url")
	if err != nil {
		return source{}, err
	}
	s.at, err = time.Parse(time.RFC3339, at)
	return s, err
}

// artifact is a binary that was built.
type artifact struct {
	name, version, sha256 string
	goVersion             string
	deps                  []module // the standard library is the first
}

// module is one that is linked.
type module struct {
	path, version string
	sum           string // in hexadecimal; "" for the standard library
}

func (m module) purl() string { return "pkg:golang/" + m.path + "@" + m.version }

func readArtifact(name, version string) (artifact, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return artifact{}, err
	}
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return artifact{}, fmt.Errorf("%s: %w", name, err)
	}
	deps, err := modules(info)
	sum := sha256.Sum256(content)
	return artifact{filepath.Base(name), version, hex.EncodeToString(sum[:]), info.GoVersion, deps}, err
}

func modules(info *debug.BuildInfo) ([]module, error) {
	all := []module{{path: "std", version: strings.TrimPrefix(info.GoVersion, "go")}}
	for _, d := range info.Deps {
		if d.Replace != nil {
			d = d.Replace
		}
		encoded, ok := strings.CutPrefix(d.Sum, "h1:")
		sum, err := base64.StdEncoding.DecodeString(encoded)
		if !ok || err != nil {
			return nil, fmt.Errorf("module %s has no checksum of a known form, but %q", d.Path, d.Sum)
		}
		all = append(all, module{d.Path, d.Version, hex.EncodeToString(sum)})
	}
	return all, nil
}

func write(name string, document any) error {
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(text, '\n'), 0o644)
}

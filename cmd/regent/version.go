package main

import (
	"cmp"
	_ "embed"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by a release: go build -ldflags "-X main.version=v1.2.3".
var version string

type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the source; "+" is appended if it was modified
	Time     string `json:"time,omitempty"`     // of the commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func currentBuild() build {
	b := build{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	b.Version = cmp.Or(b.Version, info.Main.Version, "unknown")
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			b.Revision = s.Value + b.Revision
		case s.Key == "vcs.modified" && s.Value == "true":
			b.Revision += "+"
		case s.Key == "vcs.time":
			b.Time = s.Value
		}
	}
	return b
}

func (c *cli) versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this binary",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			b := currentBuild()
			return c.show(b, [][]string{{b.String()}})
		},
	}
	c.addOutput(cmd)
	return cmd
}

// String returns the build in one line.
func (b build) String() string {
	text := "regent " + b.Version
	if b.Revision != "" {
		text += " (" + b.Revision + ")"
	}
	return text + " " + b.Go + " " + b.Platform
}

// thirdParty is the licenses and notices of the modules in this program; make generate writes it.
//
//go:embed licenses.txt
var thirdParty string

func (c *cli) licensesCommand() *cobra.Command {
	return c.printing("licenses", "Print the licenses of the modules in this binary", "", thirdParty)
}

// printing returns a command that prints a text.
func (c *cli) printing(name, short, long, text string) *cobra.Command {
	return &cobra.Command{
		Use:   name,
		Short: short,
		Long:  long,
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(c.out, text)
			return err
		},
	}
}

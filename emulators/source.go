package emulators

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// Source is where an emulator comes from.
type Source string

// The sources, in the order in which they are tried.
const (
	SourceEnv    Source = "env"    // *_EMULATOR_HOST is set
	SourceGcloud Source = "gcloud" // the Google Cloud SDK on PATH
	SourceDocker Source = "docker" // a Docker engine
)

// answerLimit limits the wait for an emulator that should already be running.
const answerLimit = 15 * time.Second

// source is one way to get an emulator.
type source struct {
	name Source
	// lacks names the part that is missing here to provide a kind; nil if none is.
	lacks func(context.Context, Kind) error
	start func(context.Context, Kind) (*emulator, error)
}

func sources(cfg Config) []source {
	sdk, engine := gcloud{log: cfg.Log}, docker{log: cfg.Log}
	return []source{
		{SourceEnv, lacksVariable, fromVariable},
		{SourceGcloud, sdk.lacks, sdk.start},
		{SourceDocker, engine.lacks, engine.start},
	}
}

// choose returns the first source that can provide the kind, or the forced one if it can.
func choose(ctx context.Context, cfg Config, kind Kind) (source, error) {
	var lacking []string
	for _, src := range sources(cfg) {
		if cfg.Source != "" && src.name != cfg.Source {
			continue
		}
		err := src.lacks(ctx, kind)
		if err == nil {
			return src, nil
		}
		lacking = append(lacking, fmt.Sprintf("%s: %v", src.name, err))
	}
	return source{}, fmt.Errorf("%s: %w (%s). %s", kind.Title(), ErrUnavailable, strings.Join(lacking, "; "), kind.advice())
}

func (s Source) validate() error {
	switch s {
	case "", SourceEnv, SourceGcloud, SourceDocker:
		return nil
	}
	return fmt.Errorf("REGENT_EMULATORS is %q: choose env, gcloud or docker, or leave it empty for the first that works", string(s))
}

func (k Kind) advice() string {
	return fmt.Sprintf("Install the Google Cloud SDK with its component %s (gcloud components install %[1]s)%s, or a Docker engine, or set %s to the host:port of a running one",
		partsOf[k].component, map[bool]string{true: " and Java 21"}[partsOf[k].java], k.Variable())
}

func lacksVariable(_ context.Context, kind Kind) error {
	if os.Getenv(kind.Variable()) == "" {
		return fmt.Errorf("%s is not set", kind.Variable())
	}
	return nil
}

func fromVariable(ctx context.Context, kind Kind) (*emulator, error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	host := os.Getenv(kind.Variable())
	if err := awaitAnswer(ctx, kind, host); err != nil {
		return nil, fmt.Errorf("%s=%s: %w", kind.Variable(), host, err)
	}
	return &emulator{kind: kind, host: host, stop: func(context.Context) error { return nil }}, nil
}

//go:build !regent_local

package export

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"golang.org/x/oauth2/google"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/oauth"
)

// dialOptions are those of a connection to Google's collector.
type dialOptions []grpc.DialOption

// scope is the scope of the credentials.
const scope = "https://www.googleapis.com/auth/cloud-platform"

// google reports whether anything goes to Google's collector.
func (s settings) google() bool {
	return s.traces.on && s.traces.google || s.metrics.on && s.metrics.google
}

// dialing returns the options of a connection to Google's collector and the project of the
// credentials; nothing for other collectors.
func (s settings) dialing(ctx context.Context) (dial dialOptions, project string, err error) {
	if !s.google() {
		return nil, "", nil
	}
	c, err := credentials(ctx)
	if err != nil {
		return nil, "", err
	}
	return dialOptions{grpc.WithPerRPCCredentials(oauth.TokenSource{TokenSource: c.TokenSource})}, c.ProjectID, nil
}

// credentials returns Application Default Credentials. They renew themselves after ctx has ended
// too.
func credentials(ctx context.Context) (*google.Credentials, error) {
	c, err := google.FindDefaultCredentials(context.WithoutCancel(ctx), scope)
	if err != nil {
		return nil, fmt.Errorf("%s needs credentials: %w", googleHost, err)
	}
	return c, nil
}

// dialTo keeps the credentials from other collectors.
func (s signal) dialTo(dial dialOptions) dialOptions {
	if s.google {
		return dial
	}
	return nil
}

func spanExporter(ctx context.Context, s signal, dial dialOptions) (sdktrace.SpanExporter, error) {
	if s.protocol == overHTTP {
		return otlptracehttp.New(ctx)
	}
	return otlptracegrpc.New(ctx, otlptracegrpc.WithDialOption(s.dialTo(dial)...))
}

func metricExporter(ctx context.Context, s signal, dial dialOptions) (sdkmetric.Exporter, error) {
	if s.protocol == overHTTP {
		return otlpmetrichttp.New(ctx)
	}
	return otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithDialOption(s.dialTo(dial)...))
}

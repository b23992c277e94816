package export

import (
	"cmp"
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
)

// newResource describes the process that is measured. OpenTelemetry's variables override everything
// else.
func newResource(ctx context.Context, c Config, project string) (*resource.Resource, error) {
	attributes := []attribute.KeyValue{
		attribute.String("service.name", "regent"),
		attribute.String("service.version", cmp.Or(c.Version, "unknown")),
	}
	add := func(key, value string) {
		if value != "" {
			attributes = append(attributes, attribute.String(key, value))
		}
	}
	add("service.instance.id", c.Instance)
	add("gcp.project_id", project)
	if service := c.Env["K_SERVICE"]; service != "" {
		add("cloud.provider", "gcp")
		add("cloud.platform", "gcp_cloud_run")
		add("cloud.account.id", project)
		add("cloud.region", c.Env["GOOGLE_CLOUD_REGION"])
		add("faas.name", service)
		add("faas.version", c.Env["K_REVISION"])
		add("faas.instance", c.Instance)
	}
	r, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(attributes...), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return r, nil
}

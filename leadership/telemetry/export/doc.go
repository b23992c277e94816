// Package export exports metrics and spans: to a collector by OTLP, configured by the standard
// variables of OpenTelemetry, and to Prometheus, which reads them.
//
// # Variables
//
// Nothing is exported by OTLP unless an endpoint is given, or an exporter by name. These variables
// are read, as OpenTelemetry defines them:
//
//	OTEL_SDK_DISABLED                       true: no OTLP
//	OTEL_TRACES_EXPORTER                    otlp, none; by default otlp if there is an endpoint
//	OTEL_METRICS_EXPORTER                   the same
//	OTEL_EXPORTER_OTLP_ENDPOINT             http://HOST:PORT or https://...
//	OTEL_EXPORTER_OTLP_PROTOCOL             grpc (default), http/protobuf
//	OTEL_EXPORTER_OTLP_HEADERS, _TIMEOUT, _COMPRESSION, _INSECURE, _CERTIFICATE,
//	_CLIENT_CERTIFICATE, _CLIENT_KEY        these seven also with TRACES_ or METRICS_ after OTLP_
//	OTEL_METRIC_EXPORT_INTERVAL, _TIMEOUT   milliseconds; 60000 and 30000
//	OTEL_BSP_SCHEDULE_DELAY, _EXPORT_TIMEOUT, _MAX_QUEUE_SIZE, _MAX_EXPORT_BATCH_SIZE
//	OTEL_TRACES_SAMPLER, _ARG               by default all requests, unless their caller says no
//	OTEL_SERVICE_NAME                       by default regent
//	OTEL_RESOURCE_ATTRIBUTES                KEY=VALUE,...
//
// OpenTelemetry's libraries ignore invalid values. This package refuses them.
//
// # Google Cloud
//
// An endpoint on telemetry.googleapis.com is called by gRPC with Application Default Credentials;
// the account needs roles/telemetry.writer. Google requires the project: the attribute
// gcp.project_id, by default GOOGLE_CLOUD_PROJECT, or else the project of the credentials. On Cloud
// Run the resource also has the service, its revision and, from GOOGLE_CLOUD_REGION, its region.
package export

// Package export carries metrics and spans out of the process: to a collector by OTLP, as the standard variables of OpenTelemetry say, and to
// Prometheus, which comes for them.
//
// # Variables
//
// Nothing is exported by OTLP unless an endpoint is given, or an exporter by name. These are read, all as OpenTelemetry has them:
//
//	OTEL_SDK_DISABLED                       true: nothing at all by OTLP
//	OTEL_TRACES_EXPORTER                    otlp, none; by default otlp if there is an endpoint
//	OTEL_METRICS_EXPORTER                   the same
//	OTEL_EXPORTER_OTLP_ENDPOINT             http://HOST:PORT or https://...
//	OTEL_EXPORTER_OTLP_PROTOCOL             grpc (default), http/protobuf
//	OTEL_EXPORTER_OTLP_HEADERS, _TIMEOUT, _COMPRESSION, _INSECURE, _CERTIFICATE, _CLIENT_CERTIFICATE, _CLIENT_KEY
//	                                        each of these seven also with TRACES_ or METRICS_ after OTLP_
//	OTEL_METRIC_EXPORT_INTERVAL, _TIMEOUT   milliseconds; 60000 and 30000
//	OTEL_BSP_SCHEDULE_DELAY, _EXPORT_TIMEOUT, _MAX_QUEUE_SIZE, _MAX_EXPORT_BATCH_SIZE
//	OTEL_TRACES_SAMPLER, _ARG               which requests are traced; by default all that the caller does not want to be left out
//	OTEL_SERVICE_NAME                       by default regent
//	OTEL_RESOURCE_ATTRIBUTES                KEY=VALUE,...
//
// OpenTelemetry's libraries ignore what they cannot read. A value that is wrong is refused here instead.
//
// # Google Cloud
//
// An endpoint on telemetry.googleapis.com is called with Application Default Credentials, by gRPC; the account needs roles/telemetry.writer.
// Google wants to know the project of what it is sent: the attribute gcp.project_id, by default GOOGLE_CLOUD_PROJECT, else the project of
// the credentials. On Cloud Run the service, its revision and, from GOOGLE_CLOUD_REGION, its region are told too.
package export

package export

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
)

// settings are the variables that the exporters do not read themselves.
type settings struct {
	traces, metrics signal
}

// signal says how traces, or metrics, are exported.
type signal struct {
	on       bool
	protocol string
	google   bool // to Google's collector
}

// googleHost is the host of Google's collector.
const googleHost = "telemetry.googleapis.com"

const (
	overGRPC = "grpc"
	overHTTP = "http/protobuf"
)

// readSettings reads the variables. An error names the first that is wrong and says what it takes.
func readSettings(env map[string]string) (settings, error) {
	disabled, err := boolean(env, "OTEL_SDK_DISABLED")
	if err != nil || disabled {
		return settings{}, err
	}
	if err := validate(env); err != nil {
		return settings{}, err
	}
	traces, err := readSignal(env, "TRACES")
	if err != nil {
		return settings{}, err
	}
	metrics, err := readSignal(env, "METRICS")
	return settings{traces, metrics}, err
}

// readSignal reads the variables of one signal, or else those of both.
func readSignal(env map[string]string, name string) (signal, error) {
	get := func(what string) (variable, value string) {
		general := "OTEL_EXPORTER_OTLP_" + what
		variable = "OTEL_EXPORTER_OTLP_" + name + "_" + what
		if env[variable] == "" {
			variable = general
		}
		return variable, env[variable]
	}
	variable, endpoint := get("ENDPOINT")
	at, err := parseEndpoint(variable, endpoint)
	if err != nil {
		return signal{}, err
	}
	exporter := "OTEL_" + name + "_EXPORTER"
	s := signal{google: at != nil && strings.EqualFold(at.Hostname(), googleHost)}
	switch env[exporter] {
	case "":
		s.on = at != nil
	case "otlp":
		s.on = true
	case "none":
	default:
		return signal{}, wrong(exporter, env[exporter], "otlp or none; Prometheus has an address of its own")
	}
	variable, protocol := get("PROTOCOL")
	switch s.protocol = cmp.Or(protocol, overGRPC); {
	case s.protocol != overGRPC && s.protocol != overHTTP:
		return signal{}, wrong(variable, protocol, overGRPC+" or "+overHTTP)
	case s.google && s.protocol != overGRPC:
		return signal{}, wrong(variable, protocol, overGRPC+", for "+googleHost+" wants fresh credentials with each call")
	case s.google && at.Scheme != "https":
		variable, _ = get("ENDPOINT")
		return signal{}, wrong(variable, endpoint, "https://"+googleHost+", because credentials are sent along")
	}
	return s, nil
}

func parseEndpoint(variable, value string) (*url.URL, error) {
	if value == "" {
		return nil, nil
	}
	at, err := url.Parse(value)
	if err != nil || at.Hostname() == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, wrong(variable, value, "http://HOST:PORT or https://HOST:PORT")
	}
	return at, nil
}

// validate checks the variables that the exporters read, and would ignore if they are wrong.
func validate(env map[string]string) error {
	for _, of := range []string{"", "TRACES_", "METRICS_"} {
		p := "OTEL_EXPORTER_OTLP_" + of
		_, insecure := boolean(env, p+"INSECURE")
		err := cmp.Or(insecure, number(env, p+"TIMEOUT", "milliseconds"), oneOf(env, p+"COMPRESSION", "gzip", "none"), pairs(env, p+"HEADERS"),
			file(env, p+"CERTIFICATE"), file(env, p+"CLIENT_CERTIFICATE"), file(env, p+"CLIENT_KEY"))
		if err != nil {
			return err
		}
	}
	return cmp.Or(
		number(env, "OTEL_METRIC_EXPORT_INTERVAL", "milliseconds"), number(env, "OTEL_METRIC_EXPORT_TIMEOUT", "milliseconds"),
		number(env, "OTEL_BSP_SCHEDULE_DELAY", "milliseconds"), number(env, "OTEL_BSP_EXPORT_TIMEOUT", "milliseconds"),
		number(env, "OTEL_BSP_MAX_QUEUE_SIZE", "spans"), number(env, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "spans"),
		oneOf(env, "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "cumulative", "delta", "lowmemory"),
		oneOf(env, "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION", "explicit_bucket_histogram", "base2_exponential_bucket_histogram"),
		pairs(env, "OTEL_RESOURCE_ATTRIBUTES"), sampler(env))
}

// wrong says which variable is wrong and what it takes. It does not repeat headers, which may hold
// a secret.
func wrong(variable, value, takes string) error {
	if strings.HasSuffix(variable, "HEADERS") {
		return fmt.Errorf("%s takes %s", variable, takes)
	}
	return fmt.Errorf("%s takes %s, not %q", variable, takes, value)
}

func boolean(env map[string]string, variable string) (bool, error) {
	switch v := strings.ToLower(env[variable]); v {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	}
	return false, wrong(variable, env[variable], "true or false")
}

func number(env map[string]string, variable, of string) error {
	v := env[variable]
	if n, err := strconv.ParseInt(v, 10, 32); v != "" && (err != nil || n < 1) {
		return wrong(variable, v, of+", 1 or more")
	}
	return nil
}

func oneOf(env map[string]string, variable string, values ...string) error {
	if v := env[variable]; v != "" && !slices.Contains(values, v) {
		return wrong(variable, v, strings.Join(values, ", "))
	}
	return nil
}

func pairs(env map[string]string, variable string) error {
	if env[variable] == "" {
		return nil
	}
	for pair := range strings.SplitSeq(env[variable], ",") {
		key, value, ok := strings.Cut(pair, "=")
		if _, err := url.PathUnescape(value); !ok || strings.TrimSpace(key) == "" || err != nil {
			return wrong(variable, env[variable], "KEY=VALUE,KEY=VALUE, with % before two hexadecimal digits")
		}
	}
	return nil
}

func file(env map[string]string, variable string) error {
	if env[variable] == "" {
		return nil
	}
	if _, err := os.ReadFile(env[variable]); err != nil {
		return fmt.Errorf("%s: %w", variable, err)
	}
	return nil
}

func sampler(env map[string]string) error {
	const name, argument = "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG"
	err := oneOf(env, name, "always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio")
	if v := env[argument]; v != "" && err == nil {
		if ratio, bad := strconv.ParseFloat(v, 64); bad != nil || !(ratio >= 0 && ratio <= 1) {
			return wrong(argument, v, "a number from 0 to 1")
		}
		if !strings.HasSuffix(env[name], "traceidratio") {
			return errors.New(argument + " is for " + name + "=traceidratio or parentbased_traceidratio")
		}
	}
	return err
}

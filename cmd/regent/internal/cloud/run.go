package cloud

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// serviceName matches the name of a Cloud Run service.
var serviceName = regexp.MustCompile(`^projects/[^/]+/locations/[^/]+/services/[^/]+$`)

// IsService reports whether text is the name of a Cloud Run service,
// projects/P/locations/L/services/S.
func IsService(text string) bool { return serviceName.MatchString(text) }

// Service checks the invokers of a Cloud Run service. verified reports whether Regent verifies
// tokens itself, so that IAM may let all calls pass.
func (c *Client) Service(ctx context.Context, name string, verified bool) (found []Finding) {
	var is struct {
		URI                string
		InvokerIAMDisabled bool `json:"invokerIamDisabled"`
		Template           struct {
			Containers []struct{ Resources struct{ CPUIdle bool } }
		}
	}
	check := "service " + name[strings.LastIndexByte(name, '/')+1:]
	switch err := c.get(ctx, runAPI, "/v2/"+escape(name), &is); {
	case err != nil:
		found = append(found, failed(check, err, "run.services.get", "roles/run.viewer"))
	case is.InvokerIAMDisabled && !verified:
		found = append(found, notOK(check, "IAM does not check its callers: set invoker_iam_disabled to false, or serve with --auth oidc"))
	default:
		found = append(found, ok(check, "IAM checks its callers: %t", !is.InvokerIAMDisabled))
	}
	for _, container := range is.Template.Containers {
		if container.Resources.CPUIdle {
			found = append(found, notOK(check, "it has its CPU during requests only, and announces, hears and renews nothing between: deploy it with --no-cpu-throttling, in Terraform cpu_idle = false"))
		}
	}
	found = append(found, c.invokers(ctx, name, verified))
	if is.URI != "" {
		found = append(found, c.Uninvited(ctx, is.URI, verified))
	}
	return found
}

// everyone has the members of an IAM policy that admit all callers, and all callers with a Google
// account.
var everyone = []string{"allUsers", "allAuthenticatedUsers"}

func (c *Client) invokers(ctx context.Context, name string, verified bool) Finding {
	const check = "invokers"
	var policy struct {
		Bindings []struct {
			Role    string
			Members []string
		}
	}
	if err := c.get(ctx, runAPI, "/v2/"+escape(name)+":getIamPolicy", &policy); err != nil {
		return failed(check, err, "run.services.getIamPolicy", "roles/run.viewer")
	}
	var members int
	for _, b := range policy.Bindings {
		members += len(b.Members)
		for _, m := range b.Members {
			if slices.Contains(everyone, m) && !verified {
				return notOK(check, "%s has the role %s, so IAM does not keep strangers out: remove the binding, or serve with --auth oidc", m, b.Role)
			}
		}
	}
	return ok(check, "%d members in the service's own policy; verified by Regent: %t", members, verified)
}

// Uninvited calls a service without a token, which must be refused: by IAM or, if verified, by
// Regent.
func (c *Client) Uninvited(ctx context.Context, service string, verified bool) Finding {
	const check = "call without a credential"
	plain := cmp.Or(c.Plain, &http.Client{})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(service, "/")+"/v1/elections?pageSize=1", nil)
	if err != nil {
		return unchecked(check, "%v", err)
	}
	alone := *plain
	alone.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := alone.Do(req)
	if err != nil {
		return unchecked(check, "%s does not answer: %v", service, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return unchecked(check, "%s does not answer: %v", service, err)
	}
	var problem struct{ Code string }
	_ = json.Unmarshal(body, &problem) // the code stays empty if the answer is another page
	byRegent := strings.HasPrefix(resp.Header.Get("Content-Type"), "application/problem+json") && problem.Code != ""
	refused := resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden
	said := fmt.Sprintf("%s answers %d", service, resp.StatusCode)
	switch {
	case resp.StatusCode == http.StatusOK:
		return notOK(check, "%s: strangers may call it; remove allUsers from its invokers, and serve with --auth platform or --auth oidc", said)
	case byRegent && refused && verified:
		return ok(check, "Regent refuses it: %s, %s", said, problem.Code)
	case byRegent && !verified:
		return notOK(check, "%s, and it is Regent's answer (%s): IAM let the call pass, so it verifies no tokens; remove allUsers from the invokers, or serve with --auth oidc", said, problem.Code)
	case refused && !byRegent:
		return ok(check, "it is refused before it reaches Regent: %s", said)
	}
	return unchecked(check, "%s, which does not show who refused it; check the address, and call from where the service's ingress admits calls", said)
}

package cloud

import (
	"context"
	"net"
	"slices"
	"strings"
)

// Topic checks the regions in which a topic, projects/P/topics/T, is stored. endpoint is the
// address that all instances publish through; "" for Google's own choice.
//
// Pub/Sub keeps the order of a key only among messages that were published in one region.
func (c *Client) Topic(ctx context.Context, topic, endpoint string) Finding {
	const check = "order across regions"
	var is struct {
		MessageStoragePolicy struct{ AllowedPersistenceRegions []string }
	}
	if err := c.get(ctx, pubsubAPI, "/v1/"+escape(topic), &is); err != nil {
		return failed(check, err, "pubsub.topics.get", "roles/pubsub.viewer")
	}
	regions := is.MessageStoragePolicy.AllowedPersistenceRegions
	slices.Sort(regions)
	in := regionOf(endpoint)
	switch {
	case endpoint != "" && in == "":
		return unchecked(check, "the endpoint %s names no region; one that does is REGION-pubsub.googleapis.com:443", endpoint)
	case in != "" && len(regions) > 0 && !slices.Contains(regions, in):
		return notOK(check, "messages are published in %s, and the topic may store them only in %s: choose an endpoint of one of these, or allow %s", in, strings.Join(regions, ", "), in)
	case in != "":
		return ok(check, "all instances that use this endpoint publish in %s", in)
	case len(regions) == 1:
		return ok(check, "the topic stores messages only in %s", regions[0])
	case len(regions) == 0:
		return unchecked(check, "the topic may store messages in any region: if instances run in several, give all of them --events-endpoint REGION-pubsub.googleapis.com:443")
	}
	return notOK(check, "the topic may store messages in %s, and the order holds only within one: give all instances --events-endpoint %s-pubsub.googleapis.com:443, and doctor, too",
		strings.Join(regions, ", "), regions[0])
}

// regionOf returns the region of a regional or locational endpoint, or "".
func regionOf(endpoint string) string {
	host, _, err := net.SplitHostPort(endpoint)
	if err != nil {
		host = endpoint
	}
	if region, is := strings.CutSuffix(host, "-pubsub.googleapis.com"); is {
		return region
	}
	if rest, is := strings.CutPrefix(host, "pubsub."); is {
		if region, is := strings.CutSuffix(rest, ".rep.googleapis.com"); is {
			return region
		}
	}
	return ""
}

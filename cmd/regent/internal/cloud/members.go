package cloud

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Members checks a topic, projects/P/topics/T, on which instances tell each other of members:
// whether this principal may use it as an instance does, and whether something keeps its messages,
// which are out of date after seconds.
func (c *Client) Members(ctx context.Context, topic string) []Finding {
	return []Finding{c.topicRights(ctx, topic), c.topicKeepsNothing(ctx, topic), c.subscriptionsExpire(ctx, topic)}
}

func (c *Client) topicRights(ctx context.Context, topic string) Finding {
	const check = "rights on the topic of members"
	type rights struct {
		Permissions []string `json:"permissions"`
	}
	needs := rights{[]string{"pubsub.topics.attachSubscription", "pubsub.topics.publish"}}
	var has rights
	if err := c.ask(ctx, pubsubAPI, "/v1/"+escape(topic)+":testIamPermissions", needs, &has); err != nil {
		return failed(check, err, "pubsub.topics.get", "roles/pubsub.viewer")
	}
	missing := slices.DeleteFunc(needs.Permissions, func(right string) bool { return slices.Contains(has.Permissions, right) })
	if len(missing) > 0 {
		return notOK(check, "this principal lacks %s; if instances run as it, give it roles/pubsub.publisher and roles/pubsub.subscriber on the topic", strings.Join(missing, " and "))
	}
	return ok(check, "this principal may publish, and attach a subscription")
}

func (c *Client) topicKeepsNothing(ctx context.Context, topic string) Finding {
	const check = "retention of members"
	var is struct{ MessageRetentionDuration string }
	if err := c.get(ctx, pubsubAPI, "/v1/"+escape(topic), &is); err != nil {
		return failed(check, err, "pubsub.topics.get", "roles/pubsub.viewer")
	}
	if kept := is.MessageRetentionDuration; kept != "" {
		return Finding{check, Warning, fmt.Sprintf("the topic keeps messages for %s, which costs money, and nothing reads them again: gcloud pubsub topics update %s --clear-message-retention-duration", kept, topic)}
	}
	return ok(check, "the topic keeps no message")
}

// pageOfSubscriptions is the largest page that the API returns.
const pageOfSubscriptions = 500

// subscriptionsExpire looks for subscriptions that never expire without use. Those that instances
// create expire after a day.
func (c *Client) subscriptionsExpire(ctx context.Context, topic string) Finding {
	const check = "expiry of members' subscriptions"
	project, _, _ := strings.Cut(topic, "/topics/")
	var all int
	var kept []string
	for next := ""; ; {
		var page struct {
			Subscriptions []struct {
				Name, Topic      string
				ExpirationPolicy *struct{ TTL string }
			}
			NextPageToken string
		}
		path := fmt.Sprintf("/v1/%s/subscriptions?pageSize=%d&pageToken=%s", escape(project), pageOfSubscriptions, url.QueryEscape(next))
		if err := c.get(ctx, pubsubAPI, path, &page); err != nil {
			return failed(check, err, "pubsub.subscriptions.list", "roles/pubsub.viewer")
		}
		for _, s := range page.Subscriptions {
			if s.Topic != topic {
				continue
			}
			all++
			if s.ExpirationPolicy != nil && s.ExpirationPolicy.TTL == "" {
				kept = append(kept, s.Name)
			}
		}
		if next = page.NextPageToken; next == "" {
			break
		}
	}
	if len(kept) > 0 {
		return notOK(check, "%d of %d never expire, and keep messages that nothing reads; delete them, or let them expire: gcloud pubsub subscriptions update %s --expiration-period=1d", len(kept), all, kept[0])
	}
	return ok(check, "each of %d expires", all)
}

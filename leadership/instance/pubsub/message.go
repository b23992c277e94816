//go:build !regent_local

package pubsub

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"regent/leadership"
	"regent/leadership/internal/form"
	"regent/leadership/wire"
)

// documentVersion is the version of document. Readers ignore unknown fields, so adding a field
// needs no new version. A new version is for a change that an old reader would misunderstand.
// Readers drop messages of an unknown version, so all instances must be able to read a version
// before the first one writes it.
const documentVersion = 1

// document is the data of a message: the event as the API shows it.
type document struct {
	Version int `json:"v"`
	wire.Event
}

// maxData is how many bytes of data a message may have to be decoded. An event has less than 5 KiB.
const maxData = 64 << 10

// encode returns the message of an event.
func encode(e leadership.Event) (*pubsubpb.PubsubMessage, error) {
	data, err := wire.Marshal(document{documentVersion, wire.NewEvent(e)})
	if err != nil {
		return nil, err
	}
	m := &pubsubpb.PubsubMessage{Data: data, OrderingKey: string(e.Election), Attributes: make(map[string]string)}
	for name, value := range attributes(e) {
		if value != "" {
			m.Attributes[name] = value
		}
	}
	return m, nil
}

// attributes returns the attributes of an event's message, which leaves out empty ones.
func attributes(e leadership.Event) map[string]string {
	return map[string]string{
		"election":     string(e.Election),
		"type":         string(e.Type),
		"fencingToken": strconv.FormatInt(int64(e.Token), 10),
		"revision":     strconv.FormatInt(int64(e.Revision), 10),
		"leaderId":     string(e.LeaderID),
	}
}

// decode reads the event of a message. The error says why it is not one.
func decode(m *pubsubpb.PubsubMessage) (leadership.Event, error) {
	var none leadership.Event
	data := m.GetData()
	if len(data) > maxData {
		return none, fmt.Errorf("it has %d bytes, and an event has at most %d", len(data), maxData)
	}
	var d document
	if err := wire.Unmarshal(data, &d); err != nil {
		return none, fmt.Errorf("its data is no event: %w", err)
	}
	if d.Version != documentVersion {
		return none, fmt.Errorf("it is of version %d, and this instance reads %d", d.Version, documentVersion)
	}
	e := d.Leadership()
	e.At = e.At.UTC()
	if err := validate(e); err != nil {
		return none, err
	}
	if m.GetOrderingKey() != string(e.Election) {
		return none, errors.New("its ordering key is not its election")
	}
	for name, want := range attributes(e) {
		if m.GetAttributes()[name] != want {
			return none, fmt.Errorf("its attribute %s disagrees with its data", name)
		}
	}
	return e, nil
}

// isType also allows types that a later version may add: they wake readers like any other.
func isType(t leadership.EventType) bool {
	return t != "" && len(t) <= 64 && !strings.ContainsFunc(string(t), func(r rune) bool { return !isLetter(r) })
}

// maxRevision is the largest integer that every JSON reader keeps exact.
const maxRevision leadership.Revision = 1<<53 - 1

// validate returns an error for an event that no instance can have committed.
func validate(e leadership.Event) error {
	if err := e.Election.Validate(); err != nil {
		return err
	}
	for _, c := range []leadership.CandidateID{e.LeaderID, e.PreviousLeaderID} {
		if c == "" {
			continue
		}
		if err := c.Validate(); err != nil {
			return err
		}
	}
	switch {
	case e.Revision < 1 || e.Revision > maxRevision:
		return fmt.Errorf("its revision is %d", e.Revision)
	case e.Token < 0 || e.Token > leadership.MaxToken:
		return fmt.Errorf("its fencing token is %d", e.Token)
	case !isType(e.Type):
		return fmt.Errorf("its type is %s", form.Shown(string(e.Type)))
	case e.At.IsZero() || e.At.Year() < 1 || e.At.Year() > 9999:
		return errors.New("it has no time")
	}
	return nil
}

package load

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"regent/leadership"
	"regent/leadership/boottime"
	"regent/leadership/wire"
)

// socket returns the connection of agent i, which is not open yet, and its server.
func (m *members) socket(i, buffer int) (*Socket, string) {
	server := m.Servers[i%len(m.Servers)]
	return &Socket{Address: server, from: m.From, buffer: buffer}, server
}

// wait asks until agent i leads. It calls asked after the first request.
func (m *members) wait(i int, asked func()) error {
	ctx := context.Background()
	s, server := m.socket(i, 1<<10)
	defer s.Close()
	key := leadership.NewKey()
	ask := leadership.AcquireRequest{CandidateID: leadership.CandidateID(fmt.Sprintf("agent-%05d", i)), Key: &key, Wait: leadership.MaxWait}
	request, err := Post(server, wire.Path(m.Election, wire.Acquire), wire.NewAcquireRequest(ask))
	if err != nil {
		return err
	}
	state := ""
	for first := true; ; first = false {
		if err := s.send(ctx, request); err != nil {
			return err
		}
		m.move(i, &state, "waits")
		if first {
			asked()
		} else {
			m.repeat()
		}
		answer, err := s.receive()
		refused, ok := errors.AsType[*StatusError](err)
		switch {
		case err == nil:
			var g wire.Grant
			if err := json.Unmarshal(answer, &g); err != nil {
				return err
			}
			m.move(i, &state, "leads at revision %d", g.Revision)
			m.report(Report{Grant: &Grant{boottime.Now(), g.LeaderID, key.Text(), g.FencingToken, g.Revision}})
			return nil
		case !ok:
			return err
		}
		if p, err := wire.DecodeProblem([]byte(refused.Body)); err != nil || !errors.Is(p.Leadership(), leadership.LeaseHeld) {
			return refused
		}
	}
}

// watch reads the stream until the process ends. It calls told after the present state has come.
func (m *members) watch(i int, told func()) error {
	s, server := m.socket(i, 512)
	defer s.Close()
	if err := s.send(context.Background(), Get(server, wire.Path(m.Election, wire.Events), wire.StreamType)); err != nil {
		return err
	}
	state := ""
	for name, knows := "", false; ; {
		line, err := s.in.ReadSlice('\n') // chunk sizes among them have no field's name
		switch {
		case errors.Is(err, bufio.ErrBufferFull): // only data is so long
			name = ""
			continue
		case err != nil:
			return err
		}
		field, value, _ := strings.Cut(strings.TrimSpace(string(line)), ": ")
		switch field {
		case "event":
			name = value
		case "id":
			at := boottime.Now()
			m.move(i, &state, "has revision %s", value)
			switch revision, err := strconv.ParseInt(value, 10, 64); {
			case err != nil || name == wire.StreamEnd:
				return fmt.Errorf("%s %s: %w", name, value, io.ErrUnexpectedEOF)
			case name == "":
				m.hear(leadership.Revision(revision), at)
			case !knows:
				knows = true
				told()
			}
			name = ""
		case "data": // which ends a message, also one without an id, as that of a member is
			name = ""
		}
	}
}

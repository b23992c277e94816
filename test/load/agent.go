package load

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"regent/leadership"
	"regent/leadership/boottime"
	"regent/leadership/wire"
)

// connect returns the connection of agent i, and its server.
func (m *members) connect(i, buffer int) (socket, string, error) {
	server := m.Servers[i%len(m.Servers)]
	s, err := connect(server, m.From, buffer)
	return s, server, err
}

// wait asks until agent i leads. It calls asked after the first request.
func (m *members) wait(i int, asked func()) error {
	s, server, err := m.connect(i, 1<<10)
	if err != nil {
		return err
	}
	defer s.Close()
	key := leadership.NewKey()
	ask := leadership.AcquireRequest{CandidateID: leadership.CandidateID(fmt.Sprintf("agent-%05d", i)), Key: &key, Wait: leadership.MaxWait}
	body, err := json.Marshal(wire.NewAcquireRequest(ask))
	if err != nil {
		return err
	}
	request := post(server, wire.Path(m.Election, wire.Acquire), body)
	state := ""
	for first := true; ; first = false {
		if _, err := s.Write(request); err != nil {
			return err
		}
		m.move(i, &state, "waits")
		if first {
			asked()
		}
		status, answer, err := s.receive()
		switch {
		case err != nil:
			return err
		case status == http.StatusOK:
			var g wire.Grant
			if err := json.Unmarshal(answer, &g); err != nil {
				return err
			}
			m.move(i, &state, "leads at revision %d", g.Revision)
			m.report(Report{Grant: &Grant{boottime.Now(), g.Election, g.LeaderID, key.Text(), g.FencingToken, g.Revision}})
			return nil
		}
		if p, err := wire.DecodeProblem(answer); err != nil || !errors.Is(p.Leadership(), leadership.LeaseHeld) {
			return fmt.Errorf("status %d: %s", status, answer)
		}
	}
}

// watch reads the stream until the process ends. It calls told after the present state has come.
func (m *members) watch(i int, told func()) error {
	s, server, err := m.connect(i, 512)
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := fmt.Fprintf(s, "GET %s HTTP/1.1\r\nHost: %s\r\nAccept: %s\r\n\r\n", wire.Path(m.Election, wire.Events), server, wire.StreamType); err != nil {
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

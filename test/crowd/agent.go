package crowd

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	"regent/leadership"
	"regent/leadership/boottime"
	"regent/leadership/wire"
)

// wait is a candidate that asks until it leads. It calls inside once it has asked.
func (m *members) wait(i int, inside func()) error {
	conn, err := m.dial(i)
	if err != nil {
		return err
	}
	defer conn.Close()
	key := leadership.NewKey()
	text := key.Text()
	body, err := json.Marshal(wire.AcquireRequest{
		CandidateID: leadership.CandidateID(fmt.Sprintf("agent-%05d", i)), Key: &text, Wait: wire.Duration(leadership.MaxWait),
	})
	if err != nil {
		return err
	}
	answers := bufio.NewReaderSize(conn, 1<<10)
	for first := true; ; first = false {
		if err := m.send(conn, i, http.MethodPost, wire.Path(m.Election, wire.Acquire), wire.ContentType, body); err != nil {
			return err
		}
		if first {
			m.enter()
			inside()
		} else {
			m.repeat()
		}
		switch grant, err := answerOf(answers); {
		case err == nil:
			m.report(Report{Grant: &Grant{boottime.Now(), grant.LeaderID, text, grant.FencingToken, grant.Revision}})
			return nil
		case !errors.Is(err, leadership.LeaseHeld):
			return err
		}
	}
}

// send writes a request.
func (m *members) send(conn net.Conn, i int, method, path, accept string, body []byte) error {
	request, err := http.NewRequest(method, "http://"+m.Servers[i%len(m.Servers)]+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Accept", accept)
	if len(body) > 0 {
		request.Header.Set("Content-Type", wire.ContentType)
	}
	return request.Write(conn)
}

// answerOf reads the answer to an acquire. A problem is an error with its code.
func answerOf(from *bufio.Reader) (wire.Grant, error) {
	var grant wire.Grant
	response, err := http.ReadResponse(from, nil)
	if err != nil {
		return grant, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return grant, err
	}
	if response.StatusCode != http.StatusOK {
		if p, err := wire.DecodeProblem(text); err == nil {
			return grant, p.Leadership()
		}
		return grant, fmt.Errorf("status %d: %s", response.StatusCode, text)
	}
	return grant, json.Unmarshal(text, &grant)
}

// watch reads the stream until the test is over. It calls inside once it has been told how things are.
func (m *members) watch(i int, inside func()) error {
	conn, err := m.dial(i)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := m.send(conn, i, http.MethodGet, wire.Path(m.Election, wire.Events), wire.StreamType, nil); err != nil {
		return err
	}
	in := bufio.NewReaderSize(conn, 512)
	for name, told := "", false; ; {
		line, err := in.ReadSlice('\n') // some are the sizes of HTTP's chunks, and look like nothing below
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
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
			switch revision, err := strconv.ParseInt(value, 10, 64); {
			case err != nil || name == wire.StreamEnd:
				return fmt.Errorf("%s %s: %w", name, value, io.ErrUnexpectedEOF)
			case name == "":
				m.hear(leadership.Revision(revision), at)
			case !told:
				told = true
				m.enter()
				inside()
			}
			name = ""
		}
	}
}

package client_test

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"regent/leadership/client"
)

func readAll(in io.Reader) ([]client.Message, error) {
	var all []client.Message
	for m, err := range client.Messages(in) {
		if err != nil {
			return all, err
		}
		all = append(all, m)
	}
	return all, nil
}

func TestEventEndsWithItsEmptyLine(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"\n", "\r", "\r\n"} {
		in, out := io.Pipe()
		go io.WriteString(out, "data: a"+end+end) // nothing follows
		for m, err := range client.Messages(in) {
			if m.Data != "a" || err != nil {
				t.Errorf("%q: %v, %v", end, m, err)
			}
			break
		}
	}
}

func TestTooLongEventIsRefused(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", client.MaxMessage/2)
	for name, text := range map[string]string{
		"a line without an end": long + long + long,
		"data":                  "data: " + long + "\ndata: " + long + "\ndata: " + long + "\n\n",
		"a comment":             ":" + long + long + "\n\n",
	} {
		if got, err := readAll(strings.NewReader(text)); err == nil || errors.Is(err, io.EOF) || !strings.Contains(err.Error(), strconv.Itoa(client.MaxMessage)) {
			t.Errorf("%s: %d events, %v; want that it is too long", name, len(got), err)
		}
	}
	if got, err := readAll(strings.NewReader(strings.Repeat(": ping\n", client.MaxMessage))); got != nil || err != io.EOF {
		t.Errorf("many short comments: %v, %v", got, err)
	}
	if got, err := readAll(strings.NewReader("data: " + long + "\n\ndata: " + long + "\n\n")); len(got) != 2 || err != io.EOF {
		t.Errorf("two long events: %d, %v", len(got), err)
	}
}

// byTheStandard parses a whole text in the way the standard describes it: first into lines, then
// into fields.
func byTheStandard(text string) []client.Message {
	text = strings.TrimPrefix(text, "\ufeff")
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	lines := strings.Split(text, "\n")
	var all []client.Message
	var name, data, id string
	for _, line := range lines[:len(lines)-1] {
		field, value, colon := strings.Cut(line, ":")
		switch value = strings.TrimPrefix(value, " "); {
		case line == "" && data != "":
			all = append(all, client.Message{Name: name, Data: strings.TrimSuffix(data, "\n"), ID: id})
			name, data = "", ""
		case line == "":
			name = ""
		case colon && field == "":
		case field == "event" && value == "message": // the default type
			name = ""
		case field == "event":
			name = value
		case field == "data":
			data += value + "\n"
		case field == "id" && !strings.Contains(value, "\x00"):
			id = value
		}
	}
	return all
}

func FuzzAnyStreamIsReadAsTheStandardHasIt(f *testing.F) {
	for _, text := range []string{
		"retry: 1000\n\nevent: snapshot\nid: 7\ndata: {}\n\n: ping\n\nid: 8\ndata: {\n data: }\n\n",
		"\ufeffdata\r\rdata: a\r\n\r\n:\ndata:b\n\n", "id: 1\x00\nid\n\ndata\n\n", "data: \xff\xfe\n\n", "data: a\r\ndata: b\r\n\r\n", "event: message\ndata: a\n\n",
		"\ufeffevent: end\nid: 1\ndata: a\r\ndata:  b\r\r: ping\n\ndata:c\n\nid: 2\n\nevent: x\nevent: y\ndata\n\ndata: cut off\n",
		"", "data: a\rdata: b\n\r\n", "data\ndata\n\n", "event: end\n\ndata: a\n\n", "id: 1\ndata: a\n\ndata: b\n\nid: 2\n\ndata: c\n\nid\ndata: d\n\n",
		"id: 1\ndata: a\n\nid: 2\x003\ndata: b\n\n", "foo: bar\nDATA: x\n data: y\ndata: a\n\n", "\ufeff\ufeffdata: a\n\ndata: b\n\n\ufeffdata: c\n\n", "data: a\n\ndata: b",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > client.MaxMessage/2 {
			return
		}
		want := byTheStandard(text)
		for name, in := range map[string]io.Reader{"at once": strings.NewReader(text), "byte by byte": iotest.OneByteReader(strings.NewReader(text))} {
			got, err := readAll(in)
			if diff := cmp.Diff(want, got); diff != "" || err != io.EOF {
				t.Errorf("%q, %s: ends with %v (-want +got)\n%s", text, name, err, diff)
			}
		}
	})
}

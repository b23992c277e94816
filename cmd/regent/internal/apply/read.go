package apply

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"regent/leadership"
	"regent/leadership/wire"
)

// Declared is an election in a file.
type Declared struct {
	Election leadership.Election
	Config   leadership.Config
	Place    string // file and line, for people
}

// File is a text that declares elections, and its name for people.
type File struct {
	Name string
	Text []byte
}

// Mistakes are the mistakes in files, each with its place, in the order of the files. There is at
// least one. For an election only the first may be listed.
type Mistakes []string

func (m Mistakes) Error() string { return strings.Join(m, "; ") }

// Read returns the elections that the files declare, in the order of their names. A file is YAML or
// JSON, and has one document or several:
//
//	defaults:             # optional; of this document
//	  lockDelay: 5s
//	elections:
//	  reports:            # the members of PUT /v1/elections/{election}
//	    leaseDuration: 1m
//	    policy: {strategy: priority}
//	  orders.eu: {}
//
// A member of an election replaces that of defaults as a whole, also policy. An election may be
// declared only once in all the files. The error is of type Mistakes.
func Read(files ...File) ([]Declared, error) {
	r := reader{places: map[leadership.Election]string{}, noted: map[string]bool{}}
	for _, f := range files {
		r.read(f)
	}
	if len(r.mistakes) > 0 {
		return nil, r.mistakes
	}
	slices.SortFunc(r.declared, func(a, b Declared) int { return strings.Compare(string(a.Election), string(b.Election)) })
	return r.declared, nil
}

type reader struct {
	file     string
	declared []Declared
	places   map[leadership.Election]string
	mistakes Mistakes
	noted    map[string]bool // mistakes by their text; refusals also by place and detail
}

// wrong notes a mistake once, because a mistake in defaults is found for each election.
func (r *reader) wrong(at *yaml.Node, format string, args ...any) {
	text := r.place(at) + ": " + fmt.Sprintf(format, args...)
	if !r.noted[text] {
		r.noted[text] = true
		r.mistakes = append(r.mistakes, text)
	}
}

func (r *reader) place(at *yaml.Node) string { return fmt.Sprintf("%s:%d", r.file, max(at.Line, 1)) }

func (r *reader) read(f File) {
	r.file = f.Name
	if top := fromJSON(f.Text); top != nil {
		r.document(top)
		return
	}
	documents := 0
	for d := yaml.NewDecoder(bytes.NewReader(f.Text)); ; {
		var document yaml.Node
		err := d.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			r.syntax(err)
			return
		}
		if content := document.Content; len(content) == 1 && content[0].Tag != "!!null" { // "---" alone is none
			documents++
			r.document(content[0])
		}
	}
	if documents == 0 {
		r.wrong(&yaml.Node{Line: 1}, "the file is empty; write elections: and below it the name of each with its configuration, or elections: {} for none")
	}
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// syntax notes the YAML parser's error.
func (r *reader) syntax(err error) {
	text := err.Error()
	at := yaml.Node{}
	if found := yamlLine.FindStringSubmatch(text); found != nil {
		fmt.Sscan(found[1], &at.Line) // stays 0 without a line
		text = text[len(found[0]):]
	}
	if strings.HasPrefix(text, "did not find expected") { // this error counts lines from 0, and names the one where the mistake begins
		at.Line++
		text += "; look at this line and those below"
	}
	r.wrong(&at, "this is neither YAML nor JSON: %s", text)
}

func (r *reader) document(top *yaml.Node) {
	members, ok := r.object(top, "the file")
	if !ok {
		return
	}
	var elections, defaults *yaml.Node
	for _, m := range members {
		switch m.name {
		case "elections":
			elections = m.value
		case "defaults":
			defaults = m.value
		case "$schema": // for editors
		default:
			r.wrong(m.key, "unknown member %s; a file has elections and defaults", wire.Quote(m.name))
		}
	}
	if elections == nil {
		r.wrong(top, "elections is missing; write elections: and below it the name of each with its configuration, or elections: {} for none")
		return
	}
	var common []member
	if defaults != nil {
		if common, ok = r.object(defaults, "defaults"); !ok {
			return
		}
		r.body("defaults", nil, common, defaults)
	}
	named, _ := r.object(elections, "elections")
	for _, m := range named {
		r.election(m, common)
	}
}

// election reads one election. Members of its own come first.
func (r *reader) election(m member, common []member) {
	e := leadership.Election(m.name)
	if err := e.Validate(); err != nil {
		r.wrong(m.key, "%v", err)
		return
	}
	if strings.HasPrefix(m.name, wire.OwnPrefix) {
		r.wrong(m.key, "names that begin with %q are reserved for Regent itself; choose another name", wire.OwnPrefix)
		return
	}
	if before := r.places[e]; before != "" {
		r.wrong(m.key, "election %q stands in %s already; keep one of the two", e, before)
		return
	}
	r.places[e] = r.place(m.key)
	whose := fmt.Sprintf("election %q", e)
	own, ok := r.object(m.value, whose)
	if !ok {
		return
	}
	body, at, ok := r.body(whose, own, common, m.key)
	if !ok {
		return
	}
	config, err := body.Leadership()
	if err == nil {
		err = leadership.Configure{Election: e, Config: config}.Validate()
	}
	if err != nil {
		r.refused(whose, at, err)
		return
	}
	r.declared = append(r.declared, Declared{Election: e, Config: config, Place: r.place(m.key)})
}

// body reads the members of a configuration, own ones before common ones. whose names it in a
// mistake.
func (r *reader) body(whose string, own, common []member, top *yaml.Node) (body wire.ConfigureRequest, at places, ok bool) {
	members := slices.Clone(own)
	for _, m := range common {
		if !slices.ContainsFunc(own, func(o member) bool { return o.name == m.name }) {
			members = append(members, m)
		}
	}
	w := writer{reader: r, at: places{"": top}}
	w.object("", members)
	if w.failed {
		return body, w.at, false
	}
	if err := wire.Decode(w.out.Bytes(), &body); err != nil {
		r.refused(whose, w.at, err)
		return body, w.at, false
	}
	return body, w.at, true
}

// refused notes the errors of the API's validation. A mistake in defaults is noted once, and not
// for each election.
func (r *reader) refused(whose string, at places, err error) {
	detail, field := err.Error(), ""
	if refusal, ok := errors.AsType[*leadership.Error](err); ok {
		detail, field = refusal.Detail, refusal.Field
	}
	n := at.of(field)
	switch {
	case strings.HasSuffix(detail, "this request requires it"):
		detail = strings.ReplaceAll(strings.TrimPrefix(field, "/"), "/", ".") + " is missing"
	case strings.HasSuffix(detail, "must be true or false, not a string"):
		detail += "; write true or false, without quotes"
	}
	if key := r.place(n) + detail; !r.noted[key] {
		r.noted[key] = true
		r.wrong(n, "%s: %s", whose, detail)
	}
}

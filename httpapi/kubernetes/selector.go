package kubernetes

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// selection selects the Leases of a list or a watch.
type selection struct {
	namespace string // "" for all
	name      string // "" for all
	labels    []requirement
}

// requirement is a condition on a label.
type requirement struct {
	label  string
	values []string // nil: any
	not    bool     // must not be one of values; with nil values: must be absent
}

// selects reads the selectors of a request for the key in its path.
func selects(r *http.Request, k key) (s selection, err error) {
	q := r.URL.Query()
	s.namespace, s.name = k.namespace, k.name
	for term := range strings.SplitSeq(q.Get("fieldSelector"), ",") {
		field, value, ok := strings.Cut(strings.Replace(term, "==", "=", 1), "=")
		switch {
		case term == "":
		case !ok || strings.HasSuffix(field, "!"):
			return s, badSelector("field", term)
		case field == "metadata.name" && (s.name == "" || s.name == value):
			s.name = value
		case field == "metadata.namespace" && (s.namespace == "" || s.namespace == value):
			s.namespace = value
		default:
			return s, badSelector("field", term)
		}
	}
	s.labels, err = requirements(q.Get("labelSelector"))
	return s, err
}

func badSelector(kind, term string) error {
	return refuse(http.StatusBadRequest, "", "unable to parse the %s selector at %q; fields are metadata.name=NAME and metadata.namespace=NAMESPACE, labels are compared by =, !=, in, notin and exists", kind, cut(term))
}

var (
	setForm   = regexp.MustCompile(`^\s*([-A-Za-z0-9_./]+)\s+(in|notin)\s*\(([-A-Za-z0-9_.,\s]*)\)\s*$`)
	equalForm = regexp.MustCompile(`^\s*([-A-Za-z0-9_./]+)\s*(==|=|!=)\s*([-A-Za-z0-9_.]*)\s*$`)
	hasForm   = regexp.MustCompile(`^\s*(!?)\s*([-A-Za-z0-9_./]+)\s*$`)
)

// maxTerms limits the terms and values of a label selector, because each is checked for each Lease.
const maxTerms = 64

// requirements reads a label selector.
func requirements(text string) (all []requirement, err error) {
	if n := strings.Count(text, ",") + 1; n > maxTerms {
		return nil, refuse(http.StatusBadRequest, "", "the label selector has %d terms and values, and at most %d are allowed", n, maxTerms)
	}
	for _, term := range terms(text) {
		if m := setForm.FindStringSubmatch(term); m != nil {
			one := requirement{label: m[1], not: m[2] == "notin", values: []string{}}
			for value := range strings.SplitSeq(m[3], ",") {
				one.values = append(one.values, strings.TrimSpace(value))
			}
			all = append(all, one)
		} else if m := equalForm.FindStringSubmatch(term); m != nil {
			all = append(all, requirement{label: m[1], not: m[2] == "!=", values: []string{m[3]}})
		} else if m := hasForm.FindStringSubmatch(term); m != nil {
			all = append(all, requirement{label: m[2], not: m[1] == "!"})
		} else {
			return nil, badSelector("label", term)
		}
	}
	return all, nil
}

// terms splits a label selector at the commas outside parentheses.
func terms(text string) (all []string) {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	depth, from := 0, 0
	for i, c := range text {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			all, from = append(all, text[from:i]), i+1
		}
	}
	return append(all, text[from:])
}

// has reports whether the selection can have a Lease of that name.
func (s selection) has(k key) bool {
	return (s.namespace == "" || s.namespace == k.namespace) && (s.name == "" || s.name == k.name)
}

func (s selection) matches(labels map[string]string) bool {
	return !slices.ContainsFunc(s.labels, func(r requirement) bool { return !r.met(labels) })
}

func (r requirement) met(labels map[string]string) bool {
	value, there := labels[r.label]
	if r.values == nil {
		return there != r.not
	}
	return there && slices.Contains(r.values, value) != r.not || !there && r.not
}

// prefix begins the elections that may be selected.
func (s selection) prefix() string {
	if s.namespace == "" {
		return prefix
	}
	return prefix + s.namespace + "."
}

// one returns the only Lease that can be selected. ok is false if there can be several.
func (s selection) one() (k key, ok bool) {
	return key{s.namespace, s.name}, s.namespace != "" && s.name != ""
}

func (s selection) validate() error {
	k := key{cmp.Or(s.namespace, "all"), cmp.Or(s.name, "all")}
	if _, err := k.election(); err != nil {
		return fmt.Errorf("the selection: %w", err)
	}
	return nil
}

package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"regent/leadership"
	"regent/leadership/wire"
)

// query reads the named parameters of a request's query. It refuses unknown and duplicate
// parameters, because ignoring one would surprise the caller.
func query(r *http.Request, names ...string) (url.Values, error) {
	if r.URL.RawQuery == "" {
		return nil, nil
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, refuse(leadership.InvalidArgument, "the query cannot be read: it has an incomplete escape or a semicolon")
	}
	for name, given := range values {
		switch {
		case !slices.Contains(names, name):
			return nil, refuse(leadership.InvalidArgument, "query parameter %s is unknown; the known ones are: %s", wire.Quote(name), known(names))
		case len(given) > 1:
			return nil, wrong(name, "%s occurs %d times in the query", name, len(given))
		}
	}
	return values, nil
}

func noQuery(r *http.Request) error {
	_, err := query(r)
	return err
}

func known(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func wrong(parameter, format string, args ...any) error {
	return &leadership.Error{Code: leadership.InvalidArgument, Field: parameter, Detail: fmt.Sprintf(format, args...)}
}

// integer reads an integer; 0 if it is missing.
func integer(values url.Values, name string) (int64, error) {
	if !values.Has(name) {
		return 0, nil
	}
	text := values.Get(name)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || text[0] == '+' {
		return 0, wrong(name, "%s must be an integer in decimal digits, not %s", name, wire.Quote(text))
	}
	return n, nil
}

// pageSize reads the number of results to return; 0 if it is missing.
func pageSize(values url.Values, name string) (int, error) {
	n, err := integer(values, name)
	if err == nil && values.Has(name) && (n < 1 || n > leadership.MaxPageSize) {
		err = wrong(name, "%s is from 1 to %d, not %d", name, leadership.MaxPageSize, n)
	}
	return int(n), err
}

// flag reads a parameter that is true or false; false if it is missing.
func flag(values url.Values, name string) (bool, error) {
	switch values.Get(name) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	if values.Has(name) {
		return false, wrong(name, "%s must be true or false, not %s", name, wire.Quote(values.Get(name)))
	}
	return false, nil
}

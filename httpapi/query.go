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

// query reads the parameters of a request's query, of which there are those named. One that is not known, or stands there twice, is refused:
// whoever sent it expects something of it.
func query(r *http.Request, names ...string) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, refuse(leadership.InvalidArgument, "the query cannot be read: an escape in it is incomplete, or a semicolon stands in it")
	}
	for name, given := range values {
		switch {
		case !slices.Contains(names, name):
			return nil, refuse(leadership.InvalidArgument, "query parameter %s is not known here; there are: %s", wire.Quote(name), known(names))
		case len(given) > 1:
			return nil, wrong(name, "%s stands in the query %d times", name, len(given))
		}
	}
	return values, nil
}

// noQuery refuses every query.
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

// wrong refuses a parameter.
func wrong(parameter, format string, args ...any) error {
	return &leadership.Error{Code: leadership.InvalidArgument, Field: parameter, Detail: fmt.Sprintf(format, args...)}
}

// integer reads a parameter; 0 if it is not there.
func integer(values url.Values, name string) (int64, error) {
	if !values.Has(name) {
		return 0, nil
	}
	text := values.Get(name)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || text[0] == '+' {
		return 0, wrong(name, "%s is an integer in decimal digits, not %s", name, wire.Quote(text))
	}
	return n, nil
}

// pageSize reads a parameter that says how many to return; 0 if it is not there.
func pageSize(values url.Values, name string) (int, error) {
	n, err := integer(values, name)
	if err == nil && values.Has(name) && (n < 1 || n > leadership.MaxPageSize) {
		err = wrong(name, "%s is from 1 to %d, not %d", name, leadership.MaxPageSize, n)
	}
	return int(n), err
}

// flag reads a parameter that is true or false; false if it is not there.
func flag(values url.Values, name string) (bool, error) {
	switch values.Get(name) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	if values.Has(name) {
		return false, wrong(name, "%s is true or false, not %s", name, wire.Quote(values.Get(name)))
	}
	return false, nil
}

package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Config says which server to call, and how.
type Config struct {
	// Server is where it is, such as "http://127.0.0.1:8080"; a path in it comes before those of the API.
	Server string
	// HTTP makes the calls; nil for one that gives up after 30 s. Redirects are not followed, whatever it says: a body has a key
	// in it, and belongs to nobody but this server.
	HTTP *http.Client
}

// Client calls one server. All methods may be called at the same time.
type Client struct {
	server string // without a slash at the end
	http   http.Client
}

// defaultTimeout is as long as the server may take to answer.
const defaultTimeout = 30 * time.Second

// New returns a client. It does not connect; the error is for a server's URL that cannot be one.
func New(c Config) (*Client, error) {
	server, err := parseServer(c.Server)
	if err != nil {
		return nil, fmt.Errorf("client: server %q: %w", c.Server, err)
	}
	client := &Client{server: server, http: http.Client{Timeout: defaultTimeout}}
	if c.HTTP != nil {
		client.http = *c.HTTP
	}
	client.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client, nil
}

func parseServer(server string) (string, error) {
	u, err := url.Parse(server)
	var parse *url.Error
	switch {
	case errors.As(err, &parse):
		return "", parse.Err // it would repeat the URL
	case err != nil:
		return "", err
	case u.Scheme != "http" && u.Scheme != "https":
		return "", errors.New(`it must begin with http:// or https://, as in "http://127.0.0.1:8080"`)
	case u.Hostname() == "":
		return "", errors.New("it names no host")
	case u.User != nil:
		return "", errors.New("it must not have a user or a password in it")
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(server, "#"):
		return "", errors.New("it must end with its path, without ? and #")
	}
	return strings.TrimRight(u.String(), "/"), nil
}

package authn

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"regent/leadership"
	"regent/leadership/wire"
)

// ResourcePath is the path of a Resource in a service (RFC 9728 §3).
const ResourcePath = "/.well-known/oauth-protected-resource"

// Resource answers with the metadata by which a client of OAuth finds the issuers whose tokens the
// service accepts (RFC 9728): of the whole service at ResourcePath, and of one path below it.
type Resource struct {
	origin    string
	documents map[string][]byte // by the path that they describe
}

// metadata is a document of RFC 9728.
type metadata struct {
	Resource string   `json:"resource"`
	Issuers  []string `json:"authorization_servers"`
	Methods  []string `json:"bearer_methods_supported"`
	Name     string   `json:"resource_name"`
}

// NewResource returns the metadata of a service. The service's address is the first audience that
// is one: an https URL, or http on loopback, with no path or that path. It is never the host of a
// request, because the caller chooses that. The Resource is nil if no audience is an address.
func NewResource(path string, issuers, audiences []string) (*Resource, error) {
	for _, audience := range audiences {
		origin := strings.TrimSuffix(strings.TrimSuffix(audience, path), "/")
		u, err := url.Parse(origin)
		if err != nil || !speakable(u, true) || u.Path != "" || len(origin) > maxURL || !printable(origin) || strings.ContainsAny(origin, ` "\?#`) {
			continue
		}
		r := &Resource{origin, map[string][]byte{}}
		for _, at := range []string{"", path} {
			if r.documents[at], err = wire.Marshal(metadata{origin + at, issuers, []string{"header"}, "Regent"}); err != nil {
				return nil, err
			}
		}
		return r, nil
	}
	return nil, nil
}

// Challenge returns the addition to the WWW-Authenticate header of a call to the path that has no
// valid token (RFC 9728 §5.1).
func (r *Resource) Challenge(path string) string {
	return fmt.Sprintf(`resource_metadata="%s%s%s"`, r.origin, ResourcePath, path)
}

func (r *Resource) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	document, found := r.documents[strings.TrimPrefix(request.URL.Path, ResourcePath)]
	var refused *leadership.Error
	switch {
	case !found:
		refused = &leadership.Error{Code: leadership.NotFound, Detail: "there is no such metadata; that of the service is at " + ResourcePath}
	case request.Method != http.MethodGet && request.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		refused = &leadership.Error{Code: wire.MethodNotAllowed, Detail: "this path allows GET, HEAD"}
	default:
		w.Header().Set("Content-Type", wire.ContentType)
		w.Header().Set("Cache-Control", "public, max-age=3600")
		w.Write(document) // an error means that the caller is gone
		return
	}
	p := wire.NewProblem(refused)
	p.RequestID = leadership.RequestID(request.Context())
	p.Write(w, p)
}

package kubernetes

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

type object = map[string]any

// Path is where the Leases stand in a service.
const Path = "/apis"

// Paths are the paths that a service must give to the door: Path, and what else clients ask an API
// server for. Most of it is not served here, and they understand that in the form of an API server
// alone.
func Paths() []string {
	return []string{Path, "/api", "/healthz", "/livez", "/openapi", "/readyz", "/version"}
}

// openAPI describes a Lease and its paths. kubectl finds there that the server knows
// fieldValidation; else it would refuse to create or apply without --validate=false.
//
//go:embed openapi.json
var openAPI []byte

// documents returns what never changes, by its path. Discovery has the forms that every version of
// kubectl reads.
func documents() map[string]any {
	version := object{"groupVersion": apiVersion, "version": "v1"}
	named := object{"name": group, "versions": []any{version}, "preferredVersion": version}
	sum := sha256.Sum256(openAPI)
	return map[string]any{
		Path:               object{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{named}},
		Path + "/" + group: object{"kind": "APIGroup", "apiVersion": "v1", "name": group, "versions": []any{version}, "preferredVersion": version},
		Path + "/" + apiVersion: object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": apiVersion, "resources": []any{object{
			"name": "leases", "singularName": "lease", "namespaced": true, "kind": "Lease",
			"verbs": []string{"create", "delete", "get", "list", "patch", "update", "watch"},
		}}},
		// Clients keep what has the hash that they know.
		"/openapi/v3":                           object{"paths": object{"apis/" + apiVersion: object{"serverRelativeURL": "/openapi/v3/apis/" + apiVersion + "?hash=" + hex.EncodeToString(sum[:])}}},
		"/openapi/v3" + Path + "/" + apiVersion: json.RawMessage(openAPI),
	}
}

// typeSwagger is the form in which kubectl reads the older OpenAPI document.
const typeSwagger = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"

// swagger answers with the older OpenAPI document, of version 2, and with nothing in it. kubectl
// looks there for a kind that is nowhere else, and says clearly that there is none.
func swagger(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet || r.Header.Get("Accept") != typeSwagger {
		return document(w, r, object{"swagger": "2.0", "info": object{"title": "Leases of Regent", "version": "v1"}, "paths": object{}})
	}
	w.Header().Set("Content-Type", strings.Replace(typeSwagger, "@", ".", 1)) // it must be a media type
	_, err := w.Write(protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "2.0"))
	return err
}

// document answers with what never changes.
func document(w http.ResponseWriter, r *http.Request, v any) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return notAllowed(w, "", "Leases are below %s", http.MethodGet)
	}
	if err := acceptable(r); err != nil {
		return err
	}
	reply(w, http.StatusOK, v)
	return nil
}

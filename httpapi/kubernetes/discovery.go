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

// Path is the path of the Leases in a service.
const Path = "/apis"

// Paths returns the paths that a service must route to the door: Path, and the other paths that
// clients ask an API server for. Most of those are answered with 404, in the form that clients
// understand.
func Paths() []string {
	return []string{Path, "/api", "/healthz", "/livez", "/openapi", "/readyz", "/version"}
}

// openAPI describes a Lease and its paths. From it kubectl learns that the server knows
// fieldValidation; otherwise it would refuse to create or apply without --validate=false.
//
//go:embed openapi.json
var openAPI []byte

// documents returns the constant documents, by path. Discovery has the forms for all versions of
// kubectl.
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
		// Clients cache the document under its hash.
		"/openapi/v3":                           object{"paths": object{"apis/" + apiVersion: object{"serverRelativeURL": "/openapi/v3/apis/" + apiVersion + "?hash=" + hex.EncodeToString(sum[:])}}},
		"/openapi/v3" + Path + "/" + apiVersion: json.RawMessage(openAPI),
	}
}

// typeSwagger is the media type in which kubectl reads the OpenAPI document of version 2.
const typeSwagger = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"

// swagger answers with an empty OpenAPI document of version 2. kubectl looks there for an unknown
// kind, and then prints a clear error.
func swagger(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet || r.Header.Get("Accept") != typeSwagger {
		return document(w, r, object{"swagger": "2.0", "info": object{"title": "Leases of Regent", "version": "v1"}, "paths": object{}})
	}
	w.Header().Set("Content-Type", strings.Replace(typeSwagger, "@", ".", 1)) // it must be a media type
	_, err := w.Write(protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "2.0"))
	return err
}

// document answers with a constant document.
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

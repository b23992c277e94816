package kubernetes

import "net/http"

// object is a JSON object.
type object = map[string]any

// What kubectl asks for before its first call, in the forms that every version of it reads.
var (
	version1 = object{"groupVersion": apiVersion, "version": "v1"}

	leasesGroup = object{"kind": "APIGroup", "apiVersion": "v1", "name": group, "versions": []any{version1}, "preferredVersion": version1}

	groups = object{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{object{"name": group, "versions": []any{version1}, "preferredVersion": version1}}}

	resources = object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": apiVersion, "resources": []any{object{
		"name": "leases", "singularName": "lease", "namespaced": true, "kind": "Lease",
		"verbs": []string{"create", "delete", "get", "list", "patch", "update", "watch"},
	}}}
)

// document answers with what never changes.
func document(w http.ResponseWriter, r *http.Request, v object) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return refuse(http.StatusMethodNotAllowed, "", "the server does not allow this method on the requested resource")
	}
	reply(w, http.StatusOK, v)
	return nil
}

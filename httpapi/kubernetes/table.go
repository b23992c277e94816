package kubernetes

import (
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"regent/leadership"
)

// acceptable refuses a client that does not accept JSON.
func acceptable(r *http.Request) error {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	if strings.TrimSpace(accept) == "" {
		return nil
	}
	for one := range strings.SplitSeq(accept, ",") {
		mediaType, _, _ := mime.ParseMediaType(one)
		if mediaType == typeJSON || mediaType == "*/*" || mediaType == "application/*" {
			return nil
		}
	}
	return refuse(http.StatusNotAcceptable, "", "only the following media types are accepted: %s", typeJSON)
}

// asTable reports whether the client prefers a Table, and its version.
func asTable(r *http.Request) (version string, as bool) {
	for one := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		mediaType, params, err := mime.ParseMediaType(one)
		if err != nil || mediaType != typeJSON {
			continue
		}
		known := []string{"v1", "v1beta1"}
		if params["as"] == "Table" && params["g"] == "meta.k8s.io" && slices.Contains(known, params["v"]) {
			return params["v"], true
		}
		if params["as"] == "" {
			return "", false
		}
	}
	return "", false
}

// row is a Lease and the election that it shows.
type row struct {
	lease
	election leadership.Lease
}

type table struct {
	Kind       string     `json:"kind"`
	APIVersion string     `json:"apiVersion"`
	Metadata   listMeta   `json:"metadata"`
	Columns    []object   `json:"columnDefinitions,omitempty"`
	Rows       []tableRow `json:"rows"`
}

type listMeta struct {
	ResourceVersion string            `json:"resourceVersion,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
}

type tableRow struct {
	Cells  []any `json:"cells"`
	Object any   `json:"object,omitempty"`
}

// columns are the columns of kubectl get. AGE is the age of the term.
var columns = []object{
	{"name": "Name", "type": "string", "format": "name", "description": "the name of the Lease", "priority": 0},
	{"name": "Holder", "type": "string", "format": "", "description": "the identity of the leader", "priority": 0},
	{"name": "Token", "type": "integer", "format": "", "description": "the fencing token of the leader or, of a vacant lease, of the last one", "priority": 0},
	{"name": "Expires In", "type": "string", "format": "", "description": "what is left of the lease, unless its leader renews it", "priority": 0},
	{"name": "Age", "type": "string", "format": "", "description": "since when the leader leads", "priority": 0},
}

func newTable(version, resourceVersion string, r *http.Request, rows []row) table {
	t := table{Kind: "Table", APIVersion: "meta.k8s.io/" + version, Metadata: listMeta{ResourceVersion: resourceVersion}, Columns: columns, Rows: []tableRow{}}
	include := r.URL.Query().Get("includeObject")
	for _, one := range rows {
		t.Rows = append(t.Rows, one.cells(version, include))
	}
	return t
}

func (r row) cells(version, include string) tableRow {
	holder, left, age := "", "", ""
	if l := r.election; l.State == leadership.Held {
		holder, left, age = identity(l), short(l.ExpiresIn), short(l.ReadAt.Sub(l.AcquiredAt))
	}
	cells := tableRow{Cells: []any{r.Metadata.Name, holder, int64(r.election.Token), left, age}}
	switch include {
	case "Object":
		cells.Object = r.lease
	case "None":
	default:
		cells.Object = object{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/" + version, "metadata": r.Metadata}
	}
	return cells
}

// short formats a duration in whole seconds, as kubectl does.
func short(d time.Duration) string { return max(d, 0).Truncate(time.Second).String() }

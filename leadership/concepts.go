package leadership

import _ "embed"

//go:embed README.md
var concepts string

// Concepts is README.md, which explains the words of this project: under each heading a list of
// entries, "- **word**, **another**: text".
func Concepts() string { return concepts }

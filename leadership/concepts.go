package leadership

import _ "embed"

//go:embed README.md
var concepts string

// Concepts returns README.md, the glossary of this project: under each heading a list of entries,
// "- **word**, **another**: text".
func Concepts() string { return concepts }

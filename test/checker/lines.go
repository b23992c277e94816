package checker

import (
	"encoding/json"
	"fmt"
	"io"
)

// Write writes the recording as one JSON object.
func (r Recording) Write(w io.Writer) error { return json.NewEncoder(w).Encode(r) }

// Read reads what Write has written.
func Read(from io.Reader) (r Recording, err error) {
	in := json.NewDecoder(from)
	in.DisallowUnknownFields()
	if err := in.Decode(&r); err != nil {
		return r, fmt.Errorf("checker: read a recording: %w", err)
	}
	return r, nil
}

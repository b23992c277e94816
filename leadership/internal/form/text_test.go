package form

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestATextShowsWhatItSays(t *testing.T) {
	for _, text := range []string{"", "its disk fails", "größer als 日本, שלום, مرحبا", "👩‍💻 says so"} { // with a zero-width joiner
		assert.NoError(t, Text(text), text)
	}
	for _, text := range []string{ // lines, marks, embeddings, overrides and isolates
		"a\nb", "a\u2028b", "a\u2029b", "a\x7fb", "a\u061cb", "a\u200eb", "a\u200fb", "a\u202ab", "a\u202bb", "a\u202cb", "a\u202db", "a\u202eb",
		"a\u2066b", "a\u2067b", "a\u2068b", "a\u2069b", "\xff",
	} {
		if Text(text) == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

package leadership

import "testing"

func TestATextShowsWhatItSays(t *testing.T) {
	for text, valid := range map[string]bool{
		"":               true,
		"its disk fails": true,
		"größer als 日本, שלום, مرحبا": true,
		"👩‍💻 says so":                true, // with a zero-width joiner
		"two\nlines":                 false,
		"two\u2028lines":             false,
		"two\u2029lines":             false,
		"a\x7fdelete":                false,
		"a\u061cmark":                false, // Arabic letter mark
		"a\u200emark":                false, // left-to-right mark
		"a\u200fmark":                false, // right-to-left mark
		"an\u202aembedding":          false,
		"an\u202bembedding":          false,
		"the\u202cend":               false,
		"an\u202doverride":           false,
		"an\u202eoverride":           false,
		"an\u2066isolate":            false,
		"an\u2067isolate":            false,
		"an\u2068isolate":            false,
		"the\u2069end":               false,
		"\xff":                       false,
	} {
		if err := validateText(text); (err == nil) != valid {
			t.Errorf("%q: %v; want it to be valid: %t", text, err, valid)
		}
	}
}

package dashboard

import (
	"context"
	"embed"
	"mime"
	"net/http"
	"path"

	"regent/httpapi/access/authn"
	"regent/leadership"
	"regent/leadership/wire"
)

// Paths of the page.
const (
	Path        = "/ui"
	PathVisitor = Path + "/visitor"
)

//go:embed assets
var assets embed.FS

// policy allows the page its own files and calls of its own origin, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

// Rights reports the rights of a caller. An *instance.Guarded implements it.
type Rights interface {
	// May reports whether the caller of the context may make a call about the election; "" stands
	// for a call about all elections.
	May(ctx context.Context, verb wire.Verb, e leadership.Election) bool
	// Covered returns the names and patterns of the elections for which May can be true.
	Covered(ctx context.Context, verb wire.Verb) []leadership.Election
}

// New returns the page. visitor answers at PathVisitor: a Visitor behind the authentication of
// callers.
func New(visitor http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+PathVisitor, visitor)
	mux.HandleFunc("GET "+Path+"/assets/{file}", func(w http.ResponseWriter, r *http.Request) { send(w, r.PathValue("file")) })
	shell := func(w http.ResponseWriter, _ *http.Request) { send(w, "index.html") }
	mux.HandleFunc("GET "+Path+"/{$}", shell)
	mux.HandleFunc("GET "+Path+"/elections/{election}", shell)
	mux.Handle("GET "+Path, http.RedirectHandler(Path+"/", http.StatusFound))
	mux.Handle("GET /{$}", http.RedirectHandler(Path+"/", http.StatusFound))
	return mux
}

func send(w http.ResponseWriter, file string) {
	text, err := assets.ReadFile("assets/" + file)
	if err != nil {
		http.Error(w, "there is no such file; the dashboard is at "+Path+"/", http.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", mime.TypeByExtension(path.Ext(file)))
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	w.Write(text) // an error means that the caller has left
}

// visit describes the visitor to the page.
type visit struct {
	Principal string      `json:"principal,omitzero"` // left out if callers are not verified
	May       []wire.Verb `json:"may"`

	// In an answer about all elections, Orders has for each order of forMany the elections that the
	// visitor may give it to. An order without elections is left out.
	Orders map[wire.Verb][]leadership.Election `json:"orders,omitempty"`
}

// asked are the calls of the page whose rights it is told.
var asked = []wire.Verb{
	wire.VerbList, wire.VerbWatchAll, wire.VerbRead, wire.VerbWatch, wire.VerbExplain, wire.VerbCheckpoint, wire.VerbJournal,
	wire.VerbAssign, wire.VerbEvict, wire.VerbPause, wire.VerbResume, wire.VerbBan, wire.VerbApprove, wire.VerbLift,
}

// forMany are the orders that the page gives to many elections.
var forMany = []wire.Verb{wire.VerbEvict, wire.VerbPause, wire.VerbResume}

// Visitor answers with the caller's principal, and the calls that it may make about the election in
// the query or, without one, about all elections. It makes no call, and leaves no audit record.
func Visitor(rights Rights) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e := leadership.Election(r.URL.Query().Get("election"))
		if err := e.Validate(); e != "" && err != nil {
			p := wire.NewProblem(&leadership.Error{Code: leadership.InvalidArgument, Field: "election", Detail: err.Error()})
			p.Write(w, p)
			return
		}
		answer := visit{May: []wire.Verb{}, Orders: map[wire.Verb][]leadership.Election{}}
		if who, known := authn.From(r.Context()); known && who != (authn.Principal{}) {
			answer.Principal = who.String()
		}
		for _, verb := range asked {
			if rights.May(r.Context(), verb, e) {
				answer.May = append(answer.May, verb)
			}
		}
		for _, verb := range forMany {
			if over := rights.Covered(r.Context(), verb); e == "" && len(over) > 0 {
				answer.Orders[verb] = over
			}
		}
		body, err := wire.Marshal(answer)
		if err != nil {
			panic(err) // cannot fail: strings can be encoded
		}
		w.Header().Set("Content-Type", wire.ContentType)
		w.Write(body) // an error means that the caller has left
	})
}

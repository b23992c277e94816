package main

// Result is everything that a run has found.
type Result struct {
	Facts    Facts
	Contests []Contest
}

// Contest compares a thing that both systems do.
type Contest struct {
	Title    string
	About    string // the measurement, and how it is made
	Of       string // what a row counts, such as "connections"
	Kind     Kind
	Entrants []Entrant
	Pairs    []Pair
	Rows     []Row
}

// Kind is the kind of a contest's samples.
type Kind string

// The kinds.
const (
	Rates  Kind = "rates"  // how often an operation is done, and how long it takes
	Delays Kind = "delays" // how long an occasional event takes
)

// Entrant is one way to do it.
type Entrant struct {
	Name string
	What string // the operation, and its writes to the disk
}

// Row is a contest at one size.
type Row struct {
	Size    int
	Samples [][]Sample // of each entrant, of each round
}

// Sample is the result of one entrant in one round.
type Sample struct {
	Count         float64 // of operations, with fractions
	Seconds       float64 // that it took
	P50, P99, Max float64 // of one operation, in milliseconds
	// seconds of processor time, of the server's process and of the load's
	CPU, Load float64 `json:",omitempty"`
}

// Measure names the figure of a sample that is compared.
type Measure string

// The measures.
const (
	Rate   Measure = "per second"
	Median Measure = "median, ms"
	Late   Measure = "p99, ms"
)

// of returns the measure of the sample.
func (m Measure) of(s Sample) float64 {
	switch m {
	case Rate:
		return s.Count / s.Seconds
	case Median:
		return s.P50
	}
	return s.P99
}

// Pair is a comparison of two entrants, by their index.
type Pair struct {
	Regent, Other int
	Measure       Measure
	Name          string // of its goals
	Goals         []Goal
}

// Goal is a goal for the ratio of a comparison, Regent's by the other's, in the rows of that size:
// a minimum for a rate, a maximum for everything else.
type Goal struct {
	Size  int
	Ratio float64
}

// values returns the measures of an entrant's samples.
func (r Row) values(entrant int, m Measure) []float64 {
	var all []float64
	for _, s := range r.Samples[entrant] {
		all = append(all, m.of(s))
	}
	return all
}

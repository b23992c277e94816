package wire

import (
	"errors"

	"regent/leadership"
)

// Page is a part of the list of elections.
type Page struct {
	Elections     []Lease `json:"elections"`
	NextPageToken string  `json:"nextPageToken,omitzero"` // left out on the last page
}

// NewPage writes a page.
func NewPage(p leadership.Page) Page {
	return Page{appended(make([]Lease, 0, len(p.Leases)), p.Leases, NewLease), string(p.Next)}
}

// Leadership reads a page. It returns an error for a document that is not a page.
func (w Page) Leadership() (leadership.Page, error) {
	if w.Elections == nil {
		return leadership.Page{}, errors.New("a page without elections")
	}
	p := leadership.Page{Next: leadership.Election(w.NextPageToken)}
	for _, e := range w.Elections {
		l, err := e.Leadership()
		if err != nil {
			return leadership.Page{}, err
		}
		p.Leases = append(p.Leases, l)
	}
	return p, nil
}

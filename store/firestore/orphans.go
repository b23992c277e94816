package firestore

import (
	"context"
	"slices"
	"strings"

	"regent/leadership"
)

// Orphans returns the names of elections that have a history but no lease document, because that
// was deleted by hand: Get and Update refuse them, and List does not find them. It reads two
// documents for each election, so use it only if none may be missed.
func (s *Store) Orphans(ctx context.Context) ([]leadership.Election, error) {
	const operation = "look for histories without a record"
	if err := s.begin(ctx); err != nil {
		return nil, unavailable(ctx, operation, err)
	}
	defer s.calls.Leave()
	q := query{
		parent:     s.database.documents(),
		collection: historyCollection,
		everywhere: true,
		from:       s.database.lease("0"), // other collections may be called history too
		before:     s.database.lease(lastRune),
		limit:      maxPage,
	}
	var orphans []leadership.Election
	for {
		page, err := s.run(ctx, q)
		if err != nil {
			return nil, unavailable(ctx, operation, err)
		}
		for some := range slices.Chunk(page.docs, leadership.MaxBatch) {
			found, err := s.orphansAmong(ctx, some)
			if err != nil {
				return nil, unavailable(ctx, operation, err)
			}
			orphans = append(orphans, found...)
		}
		if len(page.docs) < q.limit {
			return orphans, nil
		}
		q.after = page.docs[len(page.docs)-1].doc.Name
	}
}

// orphansAmong returns the elections of some documents history/newest that have no lease document.
func (s *Store) orphansAmong(ctx context.Context, newest []reading) ([]leadership.Election, error) {
	var elections []leadership.Election
	var leases []string
	for _, r := range newest {
		path, inside := strings.CutPrefix(r.doc.Name, s.database.lease(""))
		parts := strings.Split(path, "/")
		if e := leadership.Election(parts[0]); inside && s.database.newest(e) == r.doc.Name {
			elections, leases = append(elections, e), append(leases, s.database.lease(e))
		}
	}
	if len(leases) == 0 {
		return nil, nil
	}
	found, err := s.batchGet(ctx, leases...)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(elections, func(e leadership.Election) bool { return found[s.database.lease(e)].doc != nil }), nil
}

package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"regent/leadership"
	"regent/leadership/wire"
)

func (a *api) batchRenew(w http.ResponseWriter, r *http.Request) error {
	var body wire.Renewals
	if err := call(w, r, wire.MaxBatchBody, &body); err != nil {
		return err
	}
	read := func(v wire.Renewal) (leadership.LeaseRequest, error) {
		if v.Statement {
			return leadership.LeaseRequest{}, wrong("/statement", "a batch has no statements; renew the lease by itself, or leave it out")
		}
		return v.Leadership(v.Election)
	}
	b := newBatch(body.Renewals, read)
	if err := b.run(r.Context(), a.service.BatchRenew); err != nil {
		return err
	}
	return answerBatch(w, "renewals", b.results, func(i int) leadership.Election { return body.Renewals[i].Value.Election }, true)
}

func (a *api) batchCheckTokens(w http.ResponseWriter, r *http.Request) error {
	var body wire.Checks
	if err := call(w, r, wire.MaxBatchBody, &body); err != nil {
		return err
	}
	read := func(v wire.Check) (leadership.TokenCheck, error) { return v.Leadership(v.Election) }
	b := newBatch(body.Checks, read)
	if err := b.run(r.Context(), a.service.BatchCheckTokens); err != nil {
		return err
	}
	return answerBatch(w, "checks", b.results, func(i int) leadership.Election { return body.Checks[i].Value.Election }, false)
}

// batch sets malformed entries aside, so that the others can be done.
type batch[T any] struct {
	size     int                 // how many entries there are
	results  []leadership.Result // one for each entry; nil before the first
	requests []T
	place    []int // of requests[i] among the entries
}

func newBatch[W, T any](entries wire.Entries[W], read func(W) (T, error)) *batch[T] {
	b := &batch[T]{size: len(entries), requests: make([]T, 0, len(entries)), place: make([]int, 0, len(entries))}
	for i := range entries {
		var request T
		err := entries[i].Err
		if err == nil {
			request, err = read(entries[i].Value)
		}
		if err != nil {
			b.result(i).Err = err
			continue
		}
		b.requests, b.place = append(b.requests, request), append(b.place, i)
	}
	return b
}

func (b *batch[T]) result(i int) *leadership.Result {
	if b.results == nil {
		b.results = make([]leadership.Result, b.size)
	}
	return &b.results[i]
}

// run calls the service for the well-formed entries, if there are any.
func (b *batch[T]) run(ctx context.Context, do func(context.Context, []T) ([]leadership.Result, error)) error {
	if len(b.requests) == 0 {
		return nil
	}
	results, err := do(ctx, b.requests)
	if err != nil {
		return err
	}
	if len(results) != len(b.requests) {
		return fmt.Errorf("httpapi: %d results for a batch of %d", len(results), len(b.requests))
	}
	if len(results) == b.size {
		b.results = results
		return nil
	}
	for i := range results {
		*b.result(b.place[i]) = results[i]
	}
	return nil
}

// answerBatch answers with wire.Results. It writes them one by one, in the memory of one: a batch
// has up to a hundred.
func answerBatch(w http.ResponseWriter, field string, results []leadership.Result, election func(int) leadership.Election, renewed bool) (err error) {
	reused := batchReplies.Get().(*[]byte)
	defer batchReplies.Put(reused)
	body := append((*reused)[:0], `{"results":[`...)
	var lease wire.Lease
	for i := range results {
		if i > 0 {
			body = append(body, ',')
		}
		answer := wire.Result{Election: election(i)}
		if r := &results[i]; r.Err != nil {
			answer.Error = problemAt(w, wire.At(field, i), r.Err)
		} else {
			lease, answer.Lease = wire.NewLease(r.Lease), &lease
			if renewed {
				spread(&lease)
			}
		}
		if body, err = wire.AppendResult(body, &answer); err != nil {
			return err
		}
	}
	body = append(body, "]}"...)
	*reused = body
	return send(w, body, nil)
}

// batchReplies has buffers of replies; none is much longer than the longest batch.
var batchReplies = sync.Pool{New: func() any { return new([]byte) }}

// problemAt returns the problem of the entry at the pointer.
func problemAt(w http.ResponseWriter, at string, err error) *wire.Problem {
	problem := wire.NewProblem(err).In(at)
	if problem.Status >= http.StatusInternalServerError {
		blame(w, err)
	}
	return &problem
}

// blame keeps the first cause of a failure that is hidden from the caller, for the log. The others
// are most likely the same.
func blame(w http.ResponseWriter, err error) {
	if e, isExchange := w.(*exchange); isExchange && len(e.causes) == 0 {
		e.causes = append(e.causes, err)
	}
}

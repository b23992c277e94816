package cost

import "regent/leadership"

// agent is a candidate with a key.
type agent struct {
	id  leadership.CandidateID
	key leadership.Key
}

func newAgent(id leadership.CandidateID) agent { return agent{id, leadership.NewKey()} }

func (a agent) ask(e leadership.Election) leadership.AcquireRequest {
	return leadership.AcquireRequest{Election: e, CandidateID: a.id, Key: &a.key}
}

func (a agent) lease(e leadership.Election, token leadership.Token) leadership.LeaseRequest {
	return leadership.LeaseRequest{Election: e, CandidateID: a.id, Key: a.key, Token: token}
}

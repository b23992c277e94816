package checker

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// stuck names the step that cannot follow the longest order that was found.
func (p *search) stuck(m porcupine.Model, ops []porcupine.Operation) string {
	verdict, info := porcupine.CheckOperationsVerbose(m, ops, Patience)
	var longest []porcupine.Operation
	for _, partition := range info.PartialLinearizationsOperations() {
		for _, order := range partition {
			if len(order) > len(longest) {
				longest = order
			}
		}
	}
	s, taken := m.Init(), make(map[string]bool)
	for _, op := range longest {
		_, s = m.Step(s, op.Input, op.Output)
		taken[key(op)] = true
	}
	for _, op := range ops {
		if !taken[key(op)] {
			return fmt.Sprintf("%v cannot follow on %d others, after which it is at %v (%s)", op.Input, len(longest), s, verdict)
		}
	}
	return "no order was found"
}

func key(op porcupine.Operation) string { return fmt.Sprint(op.ClientId, op.Call, op.Return, op.Input) }

package clients_test

import (
	"testing"

	"regent/test/machine"
	proc "regent/test/process"
)

// together is how many subtests run side by side. They wait far more than they compute.
const together = 24

func TestMain(m *testing.M) { machine.MainTogether(m, together) }

var (
	regent = proc.Regent.Build
	driver = proc.Program{Package: "regent/test/clients/drivers/go"}.Build
)

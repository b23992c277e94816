package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAReportFileThatIsEmptyForAMomentLosesNoCounter(t *testing.T) {
	t.Parallel()
	r := &reporter{path: filepath.Join(t.TempDir(), "report.json")}
	for _, text := range []string{`{"progress":4}`, ""} {
		require.NoError(t, os.WriteFile(r.path, []byte(text), 0o600))
		r.read()
	}
	if r.begin(); r.before.Progress != 4 {
		t.Errorf("the progress of the commands before this one is %d, want 4", r.before.Progress)
	}
}

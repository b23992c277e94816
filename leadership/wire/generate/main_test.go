package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func TestGeneratedFileIsUpToDate(t *testing.T) {
	t.Parallel()
	want, err := generate("..")
	require.NoError(t, err)
	got, err := os.ReadFile(filepath.Join("..", output))
	if diff := cmp.Diff(string(want), string(got)); err != nil || diff != "" {
		t.Errorf("%s is not what make generate writes (-) (%v):\n%s", output, err, diff)
	}
}

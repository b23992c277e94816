//go:build !regent_local

package cloud

import (
	"context"
	"net/http"

	"google.golang.org/api/option"
	htransport "google.golang.org/api/transport/http"
)

func newClient(ctx context.Context) (*http.Client, error) {
	client, _, err := htransport.NewClient(ctx, option.WithScopes(scope))
	return client, err
}

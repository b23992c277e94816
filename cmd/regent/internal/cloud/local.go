//go:build regent_local

package cloud

import (
	"context"
	"errors"
	"net/http"
)

func newClient(context.Context) (*http.Client, error) {
	return nil, errors.New("this regent, as make run builds it, is without Google Cloud's clients; make build builds one with them")
}

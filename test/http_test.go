package test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"regent/leadership/wire"
)

// post makes a call that the SDK does not have. body and answer may be nil.
func post(ctx context.Context, url string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", wire.ContentType)
	_, err = exchange(plain, request, answer)
	return err
}

// plain is for calls that the SDK does not have.
var plain = &http.Client{Timeout: 30 * time.Second}

// get makes a GET that the SDK does not have.
func get(ctx context.Context, url string, answer any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	_, err = exchange(plain, request, answer)
	return err
}

// exchange sends a request and reads the answer, whose header it returns. A problem is an error
// with its code.
func exchange(client *http.Client, request *http.Request, answer any) (http.Header, error) {
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		if p, err := wire.DecodeProblem(text); err == nil {
			return nil, p.Leadership()
		}
		return nil, fmt.Errorf("status %d: %s", response.StatusCode, text)
	}
	return response.Header, json.Unmarshal(text, answer)
}

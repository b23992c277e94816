package client

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// metadataServer is Google Cloud's metadata server, on the same machine. It is recognised by a
// header of its answers. See https://cloud.google.com/run/docs/container-contract#metadata-server.
type metadataServer struct {
	host      string
	transport http.RoundTripper
}

func newMetadataServer(env func(string) string, transport http.RoundTripper) metadataServer {
	return metadataServer{cmp.Or(env("GCE_METADATA_HOST"), "metadata.google.internal"), transport}
}

// thisMetadataServer returns the metadata server of this machine, which is called without a proxy.
func thisMetadataServer() metadataServer {
	return newMetadataServer(os.Getenv, &http.Transport{DisableKeepAlives: true})
}

const (
	// metadataTimeout limits a call whose caller waits.
	metadataTimeout = time.Second
	// metadataFlavor is a header of requests to, and answers of, a metadata server.
	metadataFlavor = "Metadata-Flavor"
	// maxMetadata limits an answer; an ID token, the longest, has about 1 KiB.
	maxMetadata = 16 << 10
)

func (m metadataServer) get(ctx context.Context, path string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.host+"/computeMetadata/v1/instance/"+path, nil)
	if err != nil {
		return "", err
	}
	request.Header.Set(metadataFlavor, "Google")
	response, err := m.transport.RoundTrip(request)
	if err != nil {
		return "", fmt.Errorf("the metadata server: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxMetadata))
	switch {
	case err != nil:
		return "", fmt.Errorf("the metadata server: %w", err)
	case response.StatusCode != http.StatusOK || response.Header.Get(metadataFlavor) != "Google":
		return "", fmt.Errorf("the metadata server answered with HTTP status %d", response.StatusCode)
	}
	return strings.TrimSpace(string(body)), nil
}

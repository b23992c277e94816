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

// metadataServer is Google Cloud's: on the same machine, and known by what it puts into its answers. See
// https://cloud.google.com/run/docs/container-contract#metadata-server.
type metadataServer struct {
	host      string
	transport http.RoundTripper
}

func newMetadataServer(env func(string) string, transport http.RoundTripper) metadataServer {
	return metadataServer{cmp.Or(env("GCE_METADATA_HOST"), "metadata.google.internal"), transport}
}

// thisMetadataServer is the one of this machine. It is asked without a proxy.
func thisMetadataServer() metadataServer {
	return newMetadataServer(os.Getenv, &http.Transport{DisableKeepAlives: true})
}

const (
	// metadataTimeout bounds a question that somebody waits for.
	metadataTimeout = time.Second
	// metadataFlavor is in what is asked of a metadata server, and in what it answers.
	metadataFlavor = "Metadata-Flavor"
	// maxMetadata bounds an answer; an ID token, the longest, has about 1 KiB.
	maxMetadata = 16 << 10
)

// get asks for what stands below instance.
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
		return "", fmt.Errorf("the metadata server answers with HTTP status %d", response.StatusCode)
	}
	return strings.TrimSpace(string(body)), nil
}

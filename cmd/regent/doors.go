package main

import (
	"context"
	"net/http"

	"regent/httpapi"
	"regent/httpapi/kubernetes"
	"regent/httpapi/mcp"
	"regent/leadership"
)

// doors are the ways to call the service beside the REST API.
type doors struct {
	handlers map[string]http.Handler // by path; see httpapi.Config.Doors
	closers  []func()
}

// openDoors opens the doors that the settings ask for. config is that of the API.
func openDoors(s serviceSettings, config httpapi.Config, journal leadership.Journal) (*doors, error) {
	d := &doors{handlers: map[string]http.Handler{}}
	if s.kubernetes {
		d.handlers[kubernetes.Path] = kubernetes.New(kubernetes.Config{
			Service:     config.Service,
			Secret:      func(ctx context.Context) ([]byte, error) { return leadership.SharedSecret(ctx, journal) },
			StreamLimit: config.StreamLimit,
		})
	}
	if s.mcp {
		if err := d.openMCP(config, journal); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// close ends what the doors do in the background. It may be called again.
func (d *doors) close() {
	for _, end := range d.closers {
		end()
	}
}

// openMCP opens the door for language models. It calls the API without a network: the host and the
// origin of its own requests were checked before.
func (d *doors) openMCP(config httpapi.Config, journal leadership.Journal) error {
	config.Hosts, config.Ready = nil, nil
	door, err := mcp.NewDoor(mcp.DoorConfig{
		API:     httpapi.New(config),
		Secret:  func(ctx context.Context) ([]byte, error) { return leadership.SharedSecret(ctx, journal) },
		Version: currentBuild().Version,
		Log:     config.Log,
	})
	if err != nil {
		return err
	}
	d.handlers[mcp.Path] = door
	d.closers = append(d.closers, door.Close)
	return nil
}

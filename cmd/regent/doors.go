package main

import (
	"context"
	"net/http"

	"regent/httpapi"
	"regent/httpapi/access/authn"
	"regent/httpapi/dashboard"
	"regent/httpapi/kubernetes"
	"regent/httpapi/mcp"
	"regent/leadership"
	"regent/leadership/service"
	"regent/leadership/wire"
)

// doors are the ways to call the service beside the REST API.
type doors struct {
	byPath map[string]httpapi.Door
	close  func() // ends their background work; it may be called again
}

// openDoors opens the doors that the settings ask for. config is that of the API.
func openDoors(s serviceSettings, who *access, rights dashboard.Rights, config httpapi.Config, journal service.Journal) (*doors, error) {
	d := &doors{close: func() {}, byPath: map[string]httpapi.Door{
		kubernetes.Path: shut("--kubernetes"), mcp.Path: shut("--mcp"), dashboard.Path: shut("--ui"),
	}}
	if s.kubernetes {
		door := kubernetes.New(kubernetes.Config{
			Service:     config.Service,
			Secret:      func(ctx context.Context) ([]byte, error) { return service.SharedSecret(ctx, journal) },
			Admit:       config.Admit,
			Reply:       config.Reply,
			StreamLimit: config.StreamLimit,
		})
		for _, path := range kubernetes.Paths() {
			d.byPath[path] = who.door(httpapi.Door{Handler: door, Refuse: kubernetes.Refuse}, "")
		}
	}
	if s.ui {
		// The files hold no secret: a visitor without a credential is told there how to sign in.
		page := httpapi.Door{Handler: dashboard.New(who.door(httpapi.Door{Handler: dashboard.Visitor(rights)}, "").Handler)}
		d.byPath[dashboard.Path], d.byPath["/"] = page, page
	}
	if s.mcp {
		if err := d.openMCP(s.access, who, config, journal); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// shut answers for a door that is not enabled. It names the flag that enables it.
func shut(flag string) httpapi.Door {
	return httpapi.Door{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p := wire.NewProblem(&leadership.Error{Code: leadership.NotFound, Detail: "this server does not serve this path; start it with " + flag})
		p.Write(w, p)
	})}
}

// openMCP opens the door for language models. It calls the API without a network: the host and the
// origin of its own requests were checked before. Where this service verifies tokens, a client can
// find out which issuers it accepts.
func (d *doors) openMCP(s accessSettings, who *access, config httpapi.Config, journal service.Journal) error {
	config.Hosts, config.Ready = nil, nil
	door, err := mcp.NewDoor(mcp.DoorConfig{
		API:     httpapi.New(config),
		Admit:   config.Admit,
		Secret:  func(ctx context.Context) ([]byte, error) { return service.SharedSecret(ctx, journal) },
		Version: currentBuild().Version,
		Log:     config.Log,
	})
	if err != nil {
		return err
	}
	d.close = door.Close
	challenge := ""
	if s.auth == authOIDC {
		resource, err := authn.NewResource(mcp.Path, s.issuers, s.audiences)
		if err != nil {
			return err
		}
		if resource != nil {
			d.byPath[authn.ResourcePath], challenge = httpapi.Door{Handler: resource}, resource.Challenge(mcp.Path)
		}
	}
	d.byPath[mcp.Path] = who.door(httpapi.Door{Handler: door}, challenge)
	return nil
}

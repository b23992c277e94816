// Provider serves the schema of Terraform's Google provider, and creates nothing but state. See
// README.md for where the schema comes from.
package main

import (
	"context"
	"log"
	"slices"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

func main() {
	schemas, err := readSchemas()
	if err != nil {
		log.Fatal(err)
	}
	err = tf6server.Serve("registry.terraform.io/hashicorp/google", func() tfprotov6.ProviderServer {
		return &provider{schemas: schemas}
	})
	if err != nil {
		log.Fatal(err)
	}
}

// provider answers what terraform asks in order to validate, to plan, and to apply. Everything else
// is the embedded interface's, which is nil: a test that imports something panics.
type provider struct {
	tfprotov6.ProviderServer
	schemas schemas
}

func (p *provider) GetProviderSchema(context.Context, *tfprotov6.GetProviderSchemaRequest) (*tfprotov6.GetProviderSchemaResponse, error) {
	text := func(name string) *tfprotov6.SchemaAttribute {
		return &tfprotov6.SchemaAttribute{Name: name, Type: tftypes.String, Optional: true}
	}
	return &tfprotov6.GetProviderSchemaResponse{
		Provider:          &tfprotov6.Schema{Block: &tfprotov6.SchemaBlock{Attributes: []*tfprotov6.SchemaAttribute{text("project"), text("region")}}},
		ResourceSchemas:   p.schemas.resources,
		DataSourceSchemas: p.schemas.data,
	}, nil
}

func (p *provider) GetResourceIdentitySchemas(context.Context, *tfprotov6.GetResourceIdentitySchemasRequest) (*tfprotov6.GetResourceIdentitySchemasResponse, error) {
	return &tfprotov6.GetResourceIdentitySchemasResponse{}, nil
}

func (p *provider) ValidateProviderConfig(_ context.Context, r *tfprotov6.ValidateProviderConfigRequest) (*tfprotov6.ValidateProviderConfigResponse, error) {
	return &tfprotov6.ValidateProviderConfigResponse{PreparedConfig: r.Config}, nil
}

func (p *provider) ConfigureProvider(context.Context, *tfprotov6.ConfigureProviderRequest) (*tfprotov6.ConfigureProviderResponse, error) {
	return &tfprotov6.ConfigureProviderResponse{}, nil
}

func (p *provider) StopProvider(context.Context, *tfprotov6.StopProviderRequest) (*tfprotov6.StopProviderResponse, error) {
	return &tfprotov6.StopProviderResponse{}, nil
}

func (p *provider) ValidateResourceConfig(context.Context, *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	return &tfprotov6.ValidateResourceConfigResponse{}, nil
}

func (p *provider) ValidateDataResourceConfig(context.Context, *tfprotov6.ValidateDataResourceConfigRequest) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	return &tfprotov6.ValidateDataResourceConfigResponse{}, nil
}

// fixed are the attributes of all types that cannot be changed in place.
var fixed = []string{"config", "database", "instance", "location", "location_id", "name", "project", "region", "repository_id"}

// PlanResourceChange plans the configured values; computed values that are not configured are
// unknown until the resource is created.
func (p *provider) PlanResourceChange(_ context.Context, r *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	s := p.schemas.resources[r.TypeName]
	planned := &tfprotov6.PlanResourceChangeResponse{PlannedState: r.ProposedNewState}
	if prior, err := r.PriorState.Unmarshal(s.ValueType()); err != nil {
		return nil, err
	} else if prior.IsNull() {
		planned.PlannedState, err = filled(s, r.ProposedNewState, tftypes.UnknownValue)
		return planned, err
	}
	for _, a := range s.Block.Attributes {
		if slices.Contains(fixed, a.Name) {
			planned.RequiresReplace = append(planned.RequiresReplace, tftypes.NewAttributePath().WithAttributeName(a.Name))
		}
	}
	return planned, nil
}

// ApplyResourceChange invents what the provider would have learned, and keeps the rest as planned.
func (p *provider) ApplyResourceChange(_ context.Context, r *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	s := p.schemas.resources[r.TypeName]
	planned, err := r.PlannedState.Unmarshal(s.ValueType())
	if err != nil {
		return nil, err
	}
	made, err := tftypes.Transform(planned, func(_ *tftypes.AttributePath, v tftypes.Value) (tftypes.Value, error) {
		switch {
		case v.IsKnown():
			return v, nil
		case v.Type().Is(tftypes.String):
			return tftypes.NewValue(tftypes.String, "made"), nil
		}
		return tftypes.NewValue(v.Type(), nil), nil
	})
	if err != nil {
		return nil, err
	}
	state, err := tfprotov6.NewDynamicValue(s.ValueType(), made)
	return &tfprotov6.ApplyResourceChangeResponse{NewState: &state}, err
}

func (p *provider) ReadResource(_ context.Context, r *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	return &tfprotov6.ReadResourceResponse{NewState: r.CurrentState}, nil
}

func (p *provider) UpgradeResourceState(_ context.Context, r *tfprotov6.UpgradeResourceStateRequest) (*tfprotov6.UpgradeResourceStateResponse, error) {
	kind := p.schemas.resources[r.TypeName].ValueType()
	v, err := r.RawState.Unmarshal(kind)
	if err != nil {
		return nil, err
	}
	state, err := tfprotov6.NewDynamicValue(kind, v)
	return &tfprotov6.UpgradeResourceStateResponse{UpgradedState: &state}, err
}

// ReadDataSource invents what the provider would have looked up.
func (p *provider) ReadDataSource(_ context.Context, r *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	state, err := filled(p.schemas.data[r.TypeName], r.Config, "123456789012")
	return &tfprotov6.ReadDataSourceResponse{State: state}, err
}

// filled gives the attributes of v without a value the value computed, if they may have it.
func filled(s *tfprotov6.Schema, v *tfprotov6.DynamicValue, computed any) (*tfprotov6.DynamicValue, error) {
	object, err := v.Unmarshal(s.ValueType())
	if err != nil || object.IsNull() {
		return v, err
	}
	values := map[string]tftypes.Value{}
	if err := object.As(&values); err != nil {
		return nil, err
	}
	for _, a := range s.Block.Attributes {
		if text := a.Type.Is(tftypes.String); a.Computed && values[a.Name].IsNull() && (text || computed == tftypes.UnknownValue) {
			values[a.Name] = tftypes.NewValue(a.Type, computed)
		}
	}
	state, err := tfprotov6.NewDynamicValue(s.ValueType(), tftypes.NewValue(s.ValueType(), values))
	return &state, err
}

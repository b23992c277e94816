// Provider serves the schema of Terraform's Google provider, and creates nothing. See README.md for
// where the schema comes from.
package main

import (
	"context"
	"log"

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

// provider answers what terraform asks in order to validate and to plan. Everything else is the
// embedded interface's, which is nil: a test that applies something panics.
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

// PlanResourceChange plans the configured values; computed values that are not configured are
// unknown.
func (p *provider) PlanResourceChange(_ context.Context, r *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	planned, err := filled(p.schemas.resources[r.TypeName], r.ProposedNewState, tftypes.UnknownValue)
	return &tfprotov6.PlanResourceChangeResponse{PlannedState: planned}, err
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

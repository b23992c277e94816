package main

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

//go:embed *.schema.json
var files embed.FS

// schemas are those of resources and data sources, by type.
type schemas struct {
	resources, data map[string]*tfprotov6.Schema
}

// block is a resource, or a part of one, as in the files.
type block struct {
	Attributes map[string]attribute `json:"attributes"`
	Blocks     map[string]nested    `json:"block_types"`
}

type attribute struct {
	Type     json.RawMessage `json:"type"`
	Required bool            `json:"required"`
	Optional bool            `json:"optional"`
	Computed bool            `json:"computed"`
}

type nested struct {
	Nesting string `json:"nesting_mode"`
	Min     int64  `json:"min_items"`
	Max     int64  `json:"max_items"`
	Block   block  `json:"block"`
}

func readSchemas() (schemas, error) {
	s := schemas{map[string]*tfprotov6.Schema{}, map[string]*tfprotov6.Schema{}}
	entries, err := files.ReadDir(".")
	if err != nil {
		return s, err
	}
	for _, e := range entries {
		if err := s.read(e.Name()); err != nil {
			return s, fmt.Errorf("%s: %w", e.Name(), err)
		}
	}
	return s, nil
}

func (s schemas) read(file string) error {
	text, err := files.ReadFile(file)
	if err != nil {
		return err
	}
	var types map[string]block
	if err := json.Unmarshal(text, &types); err != nil {
		return err
	}
	for name, b := range types {
		of := s.resources
		if data, ok := strings.CutPrefix(name, "data."); ok {
			of, name = s.data, data
		}
		converted, err := b.convert()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		of[name] = &tfprotov6.Schema{Block: converted}
	}
	return nil
}

func (b block) convert() (*tfprotov6.SchemaBlock, error) {
	var to tfprotov6.SchemaBlock
	for _, name := range slices.Sorted(maps.Keys(b.Attributes)) {
		a := b.Attributes[name]
		kind, err := typeOf(a.Type)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		to.Attributes = append(to.Attributes, &tfprotov6.SchemaAttribute{
			Name: name, Type: kind, Required: a.Required, Optional: a.Optional, Computed: a.Computed,
		})
	}
	for _, name := range slices.Sorted(maps.Keys(b.Blocks)) {
		n := b.Blocks[name]
		inner, err := n.Block.convert()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		mode := tfprotov6.SchemaNestedBlockNestingModeList
		if n.Nesting == "single" {
			mode = tfprotov6.SchemaNestedBlockNestingModeSingle
		}
		to.BlockTypes = append(to.BlockTypes, &tfprotov6.SchemaNestedBlock{TypeName: name, Block: inner, Nesting: mode, MinItems: n.Min, MaxItems: n.Max})
	}
	return &to, nil
}

// typeOf reads "string" or ["map", "string"].
func typeOf(text json.RawMessage) (tftypes.Type, error) {
	simple := map[string]tftypes.Type{
		"string": tftypes.String, "number": tftypes.Number, "bool": tftypes.Bool, "dynamic": tftypes.DynamicPseudoType,
	}
	var of [2]string
	if json.Unmarshal(text, &of[1]) != nil {
		if err := json.Unmarshal(text, &of); err != nil {
			return nil, err
		}
	}
	element := simple[of[1]]
	switch {
	case element == nil:
	case of[0] == "":
		return element, nil
	case of[0] == "list":
		return tftypes.List{ElementType: element}, nil
	case of[0] == "map":
		return tftypes.Map{ElementType: element}, nil
	}
	return nil, fmt.Errorf("type %s is not known here", text)
}

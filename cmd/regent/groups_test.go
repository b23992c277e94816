package main

import (
	"slices"
	"testing"
)

func TestEachCommandStandsInOneGroup(t *testing.T) {
	t.Parallel()
	c := newCLI(system{})
	root := c.root()
	root.InitDefaultHelpCmd()
	var inGroups, there []string
	for _, g := range c.groups {
		for _, one := range g.commands {
			inGroups = append(inGroups, one.Name())
		}
		if found, _, err := root.Find([]string{g.name}); g.name != "" && g.name != "admin" && err == nil && found != root {
			t.Errorf("%q is a command, and a group: 'regent help %[1]s' shows one of them", g.name)
		}
	}
	for _, one := range root.Commands() {
		there = append(there, one.Name())
	}
	slices.Sort(inGroups)
	slices.Sort(there)
	if !slices.Equal(inGroups, there) {
		t.Errorf("commands in groups:\n%q\nthat there are:\n%q", inGroups, there)
	}
}

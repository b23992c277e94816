package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"regent/cmd/regent/internal/apply"
)

// maxDeclared limits the size of a file.
const maxDeclared = 16 << 20

// readFiles reads the files, and those in the folders, each once.
func (c *cli) readFiles(names []string) (files []apply.File, err error) {
	for _, name := range names {
		paths, err := declaring(name)
		if err != nil {
			return nil, usagef("-f: %w", err)
		}
		for _, path := range paths {
			text, err := c.readFile(path, maxDeclared)
			if err == nil && len(text) > maxDeclared {
				err = fmt.Errorf("%s is longer than %d MiB; declare the elections in several files", nameOfFile(path), maxDeclared>>20)
			}
			if err != nil {
				return nil, usagef("-f: %w", err)
			}
			files = append(files, apply.File{Name: nameOfFile(path), Text: text})
		}
	}
	return files, nil
}

// declaring returns the file, or the files in the folder that have a name of YAML or JSON. Hidden
// files are not among them: editors keep locks and copies there.
func declaring(name string) ([]string, error) {
	if name == "-" {
		return []string{name}, nil
	}
	info, err := os.Stat(name)
	if err != nil || !info.IsDir() {
		return []string{name}, err
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, e := range entries {
		if !e.IsDir() && !strings.HasPrefix(e.Name(), ".") && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			found = append(found, filepath.Join(name, e.Name()))
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("the folder %s has no *.yaml, *.yml or *.json file", name)
	}
	return found, nil
}

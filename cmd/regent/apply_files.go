package main

import (
	"fmt"
	"io"
	"io/fs"
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
		if name == "-" {
			text, err := readDeclared(c.in)
			if err != nil {
				return nil, usagef("standard input: %w", err)
			}
			files = append(files, apply.File{Name: "standard input", Text: text})
			continue
		}
		found, err := declaring(name)
		if err != nil {
			return nil, usagef("-f: %w", err)
		}
		for _, path := range found {
			f, err := os.Open(path)
			if err != nil {
				return nil, usagef("-f: %w", err)
			}
			text, err := readDeclared(f)
			f.Close() // it was read only
			if err != nil {
				return nil, usagef("-f: %s: %w", path, err)
			}
			files = append(files, apply.File{Name: path, Text: text})
		}
	}
	return files, nil
}

func readDeclared(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxDeclared+1))
	if err == nil && len(text) > maxDeclared {
		err = fmt.Errorf("it is longer than %d MiB; declare the elections in several files", maxDeclared>>20)
	}
	return text, err
}

// declaring returns the file, or the files in the folder that have a name of YAML or JSON. Hidden
// files are not among them: editors keep locks and copies there.
func declaring(name string) ([]string, error) {
	info, err := os.Stat(name)
	if err != nil || !info.IsDir() {
		return []string{name}, err
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return e.IsDir() || strings.HasPrefix(e.Name(), ".") || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name()))
	})
	if len(entries) == 0 {
		return nil, fmt.Errorf("the folder %s has no *.yaml, *.yml or *.json file", name)
	}
	var found []string
	for _, e := range entries {
		found = append(found, filepath.Join(name, e.Name()))
	}
	return found, nil
}

package main

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"regent/leadership"
)

func (c *cli) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "explain [WORD]",
		Short: "Say what a word of Regent means, or list the words",
		ValidArgsFunction: func(*cobra.Command, []string, string) (words []string, _ cobra.ShellCompDirective) {
			for _, one := range readConcepts() {
				words = append(words, one.words...)
			}
			return words, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.printLines(listConcepts()...)
			}
			all := map[string]concept{}
			for _, one := range readConcepts() {
				for _, word := range one.words {
					all[word] = one
				}
			}
			word := strings.ToLower(strings.Join(args, " "))
			if word == "" {
				return usagef("the word is empty; give one, or none to list them all")
			}
			found, known := all[word]
			if !known {
				return usagef("there is no entry for %q%s", word, meant(nearest(word, all)))
			}
			return c.printLines(found.text)
		},
	}
}

// concept is an entry of leadership.Concepts.
type concept struct {
	section string
	title   string
	words   []string // the words that it explains
	text    string   // with the title, in lines
}

func readConcepts() (all []concept) {
	entry := regexp.MustCompile(`(?m)^(?:## (.*)|- ((?:\*\*[^*]+\*\*(?:, )?)+): .*(?:\n  .*)*)$`)
	strong := regexp.MustCompile(`\*\*([^*]+)\*\*`)
	plain := strings.NewReplacer("**", "", "`", "", "\n  ", "\n")
	section := ""
	for _, found := range entry.FindAllStringSubmatch(leadership.Concepts(), -1) {
		if found[1] != "" {
			section = found[1]
			continue
		}
		one := concept{section: section, title: plain.Replace(found[2]), text: plain.Replace(strings.TrimPrefix(found[0], "- "))}
		for _, word := range strong.FindAllStringSubmatch(found[0], -1) {
			one.words = append(one.words, word[1])
		}
		all = append(all, one)
	}
	return all
}

// listConcepts returns the titles of all entries, by section.
func listConcepts() (lines []string) {
	section := ""
	for _, one := range readConcepts() {
		if one.section != section {
			section = one.section
			lines = append(lines, section+":")
		}
		lines = append(lines, "  "+one.title)
	}
	return lines
}

// Pictures runs the session of a page against a server of its own, and draws it as a terminal that
// shows one line after the other.
//
//	go run ./test/pictures -regent .build/regent README.md leadership/session.svg
package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"regent/test/process"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	regent := flag.String("regent", ".build/regent", "the `program`")
	flag.Parse()
	if err := run(ctx, *regent, flag.Arg(0), flag.Arg(1)); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, regent, page, picture string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	typed, err := commandsOf(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	answers, err := play(ctx, regent, typed)
	if err != nil {
		return err
	}
	return os.WriteFile(picture, draw(typed, answers), 0o644)
}

// commandsOf returns the commands of a page's second session, which follows the one of make.
func commandsOf(page string) (typed []string, err error) {
	blocks := strings.Split(page, "```console\n")
	if len(blocks) < 3 {
		return nil, fmt.Errorf("it has no second session")
	}
	session, _, _ := strings.Cut(blocks[2], "```")
	for line := range strings.Lines(session) {
		if command, is := strings.CutPrefix(line, "$ "); is {
			typed = append(typed, strings.TrimSpace(command))
		}
	}
	return typed, nil
}

const (
	shown = "http://127.0.0.1:8080" // the address on the page
	end   = "\x1e"                  // of what a command prints
)

// play types the commands into one shell, and returns what each prints.
func play(ctx context.Context, regent string, typed []string) ([]string, error) {
	address, err := process.Address()
	if err != nil {
		return nil, err
	}
	if regent, err = filepath.Abs(regent); err != nil {
		return nil, err
	}
	server := exec.CommandContext(ctx, regent, "serve", "--listen", address, "--store", "memory:")
	if err := process.Begin(server); err != nil {
		return nil, err
	}
	defer server.Wait()
	defer server.Process.Kill()
	url := "http://" + address
	adapt := strings.NewReplacer(shown, url, ".build/regent", regent)
	var script strings.Builder
	fmt.Fprintf(&script, "curl -s --retry 30 --retry-connrefused -o /dev/null %s/health/ready\n", url)
	for _, command := range typed {
		fmt.Fprintf(&script, "%s\nprintf '\\036'\n", adapt.Replace(command))
	}
	shell := exec.CommandContext(ctx, "bash", "-eu", "-o", "pipefail", "-c", script.String())
	shell.Env = process.Environ("REGENT_SERVER="+url, "TZ=UTC")
	var failed bytes.Buffer
	shell.Stderr = &failed
	out, err := shell.Output()
	if err != nil {
		return nil, fmt.Errorf("the session: %w\n%s", err, failed.String())
	}
	return strings.Split(strings.ReplaceAll(string(out), url, shown), end), nil
}

const (
	columns = 104 // longer lines are cut
	leading = 20
	style   = `<style>
    text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #57606a; white-space: pre; animation: appear .01s both }
    .typed { fill: #1f2328; font-weight: 600 }
    rect { fill: #f6f8fa; stroke: #d0d7de }
    @keyframes appear { from { visibility: hidden } }
    @media (prefers-color-scheme: dark) { text { fill: #9da7b3 } .typed { fill: #e6edf3 } rect { fill: #161b22; stroke: #30363d } }
    @media (prefers-reduced-motion: reduce) { text { animation: none } }
  </style>
`
)

// draw returns the picture, in which a command waits for the answer to the one before.
func draw(typed, answers []string) []byte {
	var lines bytes.Buffer
	y, at := 10, 0.5
	line := func(class, text string) {
		y += leading
		if utf8.RuneCountInString(text) > columns {
			text = string([]rune(text)[:columns-1]) + "…"
		}
		fmt.Fprintf(&lines, `  <text%s x="18" y="%d" style="animation-delay:%.1fs">`, class, y, at)
		xml.EscapeText(&lines, []byte(text))
		lines.WriteString("</text>\n")
	}
	for i, command := range typed {
		line(` class="typed"`, "$ "+command)
		at += 0.7
		if answer := strings.TrimSpace(answers[i]); answer != "" {
			for text := range strings.SplitSeq(answer, "\n") {
				line("", text)
			}
			at += 1.1
		}
	}
	var svg bytes.Buffer
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 %d" role="img" aria-label="The session in a terminal">`+"\n  "+style, y+20)
	fmt.Fprintf(&svg, `  <rect x="0.5" y="0.5" width="859" height="%d" rx="8"/>`+"\n%s</svg>\n", y+19, lines.Bytes())
	return svg.Bytes()
}

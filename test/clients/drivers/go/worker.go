package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"regent/test/clients"
)

// work ticks, as the command of a leader, until it is told to stop or is killed. While it lives,
// its tick counts as the belief that it leads.
func work() error {
	token, err := strconv.ParseInt(os.Getenv("REGENT_FENCING_TOKEN"), 10, 64)
	if err != nil {
		return fmt.Errorf("REGENT_FENCING_TOKEN: %w", err)
	}
	write(clients.Event{Event: clients.Leading, At: now(), Token: token})
	go func() {
		for {
			write(clients.Event{Event: clients.Tick, At: now(), Token: token, Valid: new(true), RemainingMs: remaining()})
			time.Sleep(tickEvery)
		}
	}()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() && lines.Text() != "stop" {
		progress, isReport := strings.CutPrefix(lines.Text(), "report ")
		if !isReport {
			return fmt.Errorf("a worker knows stop and report, not %q", lines.Text())
		}
		if err := report(progress); err != nil {
			return err
		}
	}
	return lines.Err()
}

// remaining returns the time left by the deadline file of regent run; nil if there is no file.
func remaining() *float64 {
	text, err := os.ReadFile(os.Getenv("REGENT_DEADLINE_FILE"))
	if err != nil {
		return nil
	}
	first, _, _ := strings.Cut(string(text), "\n")
	deadline, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		return nil
	}
	return new(float64(max(deadline-now()/int64(time.Millisecond)-1, 0)))
}

// report replaces the file that the wrapper reads.
func report(progress string) error {
	file := os.Getenv("REGENT_REPORT_FILE")
	if err := os.WriteFile(file+".new", fmt.Appendf(nil, `{"progress":%s}`, progress), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

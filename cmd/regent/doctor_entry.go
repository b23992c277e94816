package main

import (
	"regexp"

	"regent/cmd/regent/internal/cloud"
)

// entries are headings and ids of TROUBLESHOOTING.md, each with the failures that it is about, as
// "CHECK: TEXT". The first that matches counts; the last matches all.
var entries = []struct {
	anchor string
	about  *regexp.Regexp
}{
	{"in-use", regexp.MustCompile(`in use by another process`)},
	{"clock", regexp.MustCompile(`^clock: `)},
	{"unverified-callers", regexp.MustCompile(`^(invokers|call without a credential): |IAM does not check`)},
	{"unreachable", regexp.MustCompile(`^(service|peer) `)},
	{"read-only", regexp.MustCompile(`^[^:]*members|^delete that subscription: `)},
	{"unannounced-events", regexp.MustCompile(`^(open the topic|subscribe|publish|hear|delete the subscription|order across regions): `)},
	{"emulator", regexp.MustCompile(`127\.0\.0\.1:\d+: connect: connection refused`)},
	{"errors", regexp.MustCompile(``)},
}

// addEntries adds to each check that failed which entry to read.
func (x *doctorReport) addEntries() {
	for _, row := range x.rows {
		if row[1] != string(cloud.NotOK) {
			continue
		}
		for _, e := range entries {
			if e.about.MatchString(row[0] + ": " + row[3]) {
				row[3] += "; see cmd/regent/TROUBLESHOOTING.md#" + e.anchor
				break
			}
		}
	}
}

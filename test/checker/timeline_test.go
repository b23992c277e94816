package checker_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"regent/test/checker"
)

func TestTheTimelineShowsTermsBeliefsCallsAndFaults(t *testing.T) {
	t.Parallel()
	r := reigns(t)
	lose(&r, 15)
	r.Faults = []checker.Fault{{Name: "cut <here>", From: 12 * s, Until: checker.Forever}}
	var picture bytes.Buffer
	if err := checker.Timeline(&picture, r, "planner"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{">1 ann<", ">4 ann<", "cy believes", "(r8)", "outcome unknown", "cut &lt;here&gt;, 12s"} {
		if !strings.Contains(picture.String(), want) {
			t.Errorf("%s is not in the picture", want)
		}
	}
	checkXML(t, &picture)
	var empty bytes.Buffer
	if err := checker.Timeline(&empty, checker.Recording{}, "planner"); err != nil {
		t.Fatal(err)
	}
	checkXML(t, &empty)
}

func checkXML(t *testing.T, from io.Reader) {
	t.Helper()
	for d := xml.NewDecoder(from); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

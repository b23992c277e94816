package wire

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Duration is read from a Go duration string ("1m30s", "1500ms") and written in seconds ("90s",
// "1.5s").
type Duration time.Duration

// String returns the duration in seconds, exactly.
func (d Duration) String() string {
	text, _ := d.AppendText(nil)
	return string(text)
}

// AppendText appends the duration in seconds, exactly.
func (d Duration) AppendText(text []byte) ([]byte, error) {
	whole, rest := d/Duration(time.Second), d%Duration(time.Second)
	if d < 0 {
		text, whole, rest = append(text, '-'), -whole, -rest
	}
	text = strconv.AppendInt(text, int64(whole), 10)
	if rest != 0 {
		text = bytes.TrimRight(fmt.Appendf(text, ".%09d", int64(rest)), "0")
	}
	return append(text, 's'), nil
}

// MarshalText is for encoding/json, which does not use AppendText.
func (d Duration) MarshalText() ([]byte, error) { return d.AppendText(nil) }

// UnmarshalText accepts what time.ParseDuration accepts.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return sentence(`must be a duration such as "30s", "1m30s" or "1500ms", not ` + Quote(string(text)))
	}
	*d = Duration(v)
	return nil
}

// millisDown and millisUp round to whole milliseconds.
func millisDown(d time.Duration) int64 { return int64(d / time.Millisecond) }
func millisUp(d time.Duration) int64   { return millisDown(d + time.Millisecond - 1) }

// fromMillis returns a duration of ms milliseconds, or about the longest Duration if ms is more
// than that.
func fromMillis(ms int64) time.Duration {
	const limit = math.MaxInt64 / int64(time.Millisecond)
	return time.Duration(min(max(ms, 0), limit)) * time.Millisecond
}

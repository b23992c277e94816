package wire

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration reads what time.ParseDuration reads, and is written in seconds: "90s", "1.5s".
type Duration time.Duration

// String is the duration in seconds, exactly.
func (d Duration) String() string {
	sign, whole, rest := "", d/Duration(time.Second), d%Duration(time.Second)
	if d < 0 {
		sign, whole, rest = "-", -whole, -rest
	}
	fraction := strings.TrimRight(fmt.Sprintf(".%09d", int64(rest)), ".0")
	return sign + strconv.FormatInt(int64(whole), 10) + fraction + "s"
}

// MarshalJSON writes the string.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads a JSON string.
func (d *Duration) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf(`must be a duration such as "30s", "1m30s" or "1500ms", not %s`, Quote(s))
	}
	*d = Duration(v)
	return nil
}

// millisDown and millisUp count whole milliseconds.
func millisDown(d time.Duration) int64 { return int64(d / time.Millisecond) }
func millisUp(d time.Duration) int64   { return millisDown(d + time.Millisecond - 1) }

// fromMillis is the reverse; what no Duration can hold becomes the longest that it can.
func fromMillis(ms int64) time.Duration {
	const limit = math.MaxInt64 / int64(time.Millisecond)
	return time.Duration(min(max(ms, 0), limit)) * time.Millisecond
}

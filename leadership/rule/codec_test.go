package rule

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
)

// newer is the codec of a program to which "title" is something that this one must not ignore.
var newer = Codec{Next: true}

func TestAProgramKeepsMembersThatItDoesNotKnow(t *testing.T) {
	policy := Policy{Config: leadership.Config{LeaseDuration: time.Minute, Description: "<b>"}, Unknown: `{"z":[1.50,"<"]}`}
	r := Record{Election: "jobs", Policy: policy, Standing: Standing{Unknown: `{"a":{"b":1}}`}}
	carried, err := newer.Encode(&r)
	want := Carried{Policy: `{"leaseDurationMs":60000,"title":"<b>","z":[1.50,"<"]}`, Standing: `{"a":{"b":1}}`, Needs: 2}
	if err != nil || carried != want || r.Needs != 2 {
		t.Fatalf("got %+v, %v; want %+v", carried, err, want)
	}
	seen := Record{Election: "jobs"}
	carried.Needs = 1 // as if the older program might ignore it
	if err := (Codec{}).Decode(&seen, carried); err != nil || seen.Policy.Description != "" || seen.Policy.Unknown != `{"title":"<b>","z":[1.50,"<"]}` {
		t.Fatalf("the older program reads %+v, %v", seen, err)
	}
	seen.Policy.LeaseDuration = time.Hour
	if carried, err = (Codec{}).Encode(&seen); err != nil {
		t.Fatal(err)
	}
	policy.LeaseDuration = time.Hour
	again := Record{Election: "jobs"}
	if err := newer.Decode(&again, carried); err != nil || again.Policy != policy || again.Standing != r.Standing {
		t.Errorf("the newer program reads %+v, %v; want %+v", again, err, policy)
	}
}

func TestRecordNeedsNewerProgramOnlyWhileItUsesItsFeatures(t *testing.T) {
	plain := Record{Election: "jobs", Policy: Policy{Config: leadership.Config{LeaseDuration: time.Minute}}}
	carried, err := newer.Encode(&plain)
	if err != nil || carried.Needs != 1 {
		t.Fatalf("without the member: got %+v, %v", carried, err)
	}
	used := plain
	used.Policy.Description = "x"
	if carried, err = newer.Encode(&used); err != nil || carried.Needs != 2 || used.Needs != 2 {
		t.Fatalf("with the member: got %+v, %v", carried, err)
	}
	seen := Record{Election: "jobs", Token: 7}
	err = Codec{}.Decode(&seen, carried)
	if !errors.Is(err, leadership.RecordTooNew) || !strings.Contains(err.Error(), `"jobs"`) || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("the older program reads %+v, %v; want %s of the election that names the version", seen, err, leadership.RecordTooNew)
	}
	used.Policy.Description, used.Policy.Unknown = "", `{"future":true}`
	if carried, err = newer.Encode(&used); err != nil || carried.Needs != 2 {
		t.Errorf("with a member that may need it: got %+v, %v", carried, err)
	}
	used.Policy.Unknown = ""
	if carried, err = newer.Encode(&used); err != nil || carried.Needs != 1 {
		t.Errorf("once it is no longer used: got %+v, %v", carried, err)
	}
}

func TestCodecRefusesTextsThatNoProgramWrites(t *testing.T) {
	large := `{"x":"` + strings.Repeat("x", MaxCarriedBytes) + `"}`
	for name, from := range map[string]Carried{
		"no version":            {},
		"a negative version":    {Needs: -1},
		"no object":             {Needs: 1, Policy: `[]`},
		"a null":                {Needs: 1, Standing: `null`},
		"no JSON":               {Needs: 1, Standing: `{`},
		"something behind":      {Needs: 1, Policy: `{} {}`},
		"a name twice":          {Needs: 1, Policy: `{"lockDelayMs":1,"lockDelayMs":2}`},
		"an unknown name twice": {Needs: 1, Standing: `{"a":[{"b":1,"b":1}]}`},
		"no UTF-8":              {Needs: 1, Standing: "{\"a\":\"\xff\"}"},
		"a number for a text":   {Needs: 1, Policy: `{"description":1}`},
		"two lines for a text":  {Needs: 1, Policy: `{"description":"two\nlines"}`},
		"a text for a number":   {Needs: 1, Policy: `{"lockDelayMs":"1"}`},
		"a null for a number":   {Needs: 1, Policy: `{"lockDelayMs":null}`},
		"a fraction":            {Needs: 1, Policy: `{"lockDelayMs":1.5}`},
		"below zero":            {Needs: 1, Policy: `{"lockDelayMs":-1}`},
		"beyond all bounds":     {Needs: 1, Policy: `{"leaseDurationMs":86400001}`},
		"a zero":                {Needs: 1, Policy: `{"lockDelayMs":0}`},
		"an exponent":           {Needs: 1, Standing: `{"created":1e3}`},
		"an escaped letter":     {Needs: 1, Policy: `{"description":"\u0061"}`},
		"too large":             {Needs: 1, Policy: large},
	} {
		r := Record{Election: "jobs"}
		assert.ErrorIs(t, (Codec{}).Decode(&r, from), leadership.RecordCorrupt, "%s: got %+v", name, r)
	}
	assert.NoError(t, (Codec{}).Decode(&Record{Election: "jobs"}, Carried{Needs: 1, Policy: large[:6] + large[14:]}), "as large as may be")
	half := `{"x":"` + strings.Repeat("x", MaxCarriedBytes/2) + `"}`
	r := Record{Election: "jobs", Policy: Policy{Unknown: half}, Standing: Standing{Unknown: half}}
	if _, err := (Codec{}).Encode(&r); !errors.Is(err, leadership.InvalidArgument) || !strings.Contains(err.Error(), "at most 49152 bytes") {
		t.Errorf("too large to be written: %v", err)
	}
	r = Record{Election: "jobs", Policy: Policy{Unknown: `{"lockDelayMs":1}`}}
	if _, err := (Codec{}).Encode(&r); err == nil {
		t.Error("a member that is known and unknown was written")
	}
}

func FuzzCodec(f *testing.F) {
	f.Add(`{"lockDelayMs":1,"a":[{"b":1e400}]}`, ``)
	f.Add(` {"a" : "\u003c", "leaseDurationMs": 60000 } `, `{"":{}}`)
	f.Add(`{"a":1,"\u0061":2}`, `{`)
	p, s := fullest()
	full, err := Codec{}.Encode(&Record{Election: "jobs", Policy: p, Standing: s})
	require.NoError(f, err)
	f.Add(full.Policy, full.Standing)
	f.Add(`{"strategy":"priority","windowMs":-1,"require":"gpu ssd","electorate":"ann bob"}`, `{"bids":[{"candidateId":"ann","since":"2026-01-01T00:00:00Z"}],"challenger":"bob","secret":"0011223344556677"}`)
	f.Add(`{"errorRate":{"max":0.5,"min":4}}`, `{"ends":{"term":"2026-01-01T00:00:00+02:13"},"reportedAt":"2026-01-01T00:00:00.5Z"}`)
	f.Fuzz(func(t *testing.T, policy, standing string) {
		r := Record{Election: "jobs"}
		if err := (Codec{}).Decode(&r, Carried{Policy: policy, Standing: standing, Needs: 1}); err != nil {
			require.ErrorIs(t, err, leadership.RecordCorrupt)
			return
		}
		carried, err := Codec{}.Encode(&r)
		if errors.Is(err, leadership.InvalidArgument) {
			return // the canonical form may be longer
		}
		for _, text := range []string{carried.Policy, carried.Standing} {
			if err != nil || text != "" && !json.Valid([]byte(text)) {
				t.Fatalf("%q, %q is written as %+v, %v", policy, standing, carried, err)
			}
		}
		again := r
		if err := (Codec{}).Decode(&again, carried); err != nil || again != r {
			t.Fatalf("%+v is read again as %+v, %v", r, again, err)
		}
	})
}

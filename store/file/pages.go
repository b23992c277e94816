package file

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"io"
	"sort"
	"sync"

	"regent/leadership"
)

// pageEvents is how many events a page has.
const pageEvents = 256

// pages keep events in the order of their commits, the full ones compressed.
type pages struct {
	list   []page
	first  uint64 // pages that were dropped before list
	look   int    // the index in list of the page that thin checks next
	writer *flate.Writer
}

// page has events, each after its length. A length of 0 stands for a removed event. Its content is
// never changed in place, but raw is appended to.
type page struct {
	raw    []byte // while it is not packed
	packed []byte
	count  int   // events, including removed ones
	kept   int   // events in raw or packed
	alive  int   // events that their elections have not forgotten
	first  int64 // the time of the first event, nanoseconds since 1970
}

// pageCache caches the page that was read last.
type pageCache struct {
	mu      sync.Mutex
	number  uint64
	content []byte // nil if there is none
}

// end returns the number of the next event.
func (p *pages) end() uint64 {
	if len(p.list) == 0 {
		return p.first * pageEvents
	}
	return (p.first+uint64(len(p.list))-1)*pageEvents + uint64(p.list[len(p.list)-1].count)
}

// add appends a copy of an event.
func (p *pages) add(event []byte, at int64) {
	if n := len(p.list); n == 0 || p.list[n-1].count == pageEvents {
		p.list = append(p.list, page{first: at})
	}
	last := &p.list[len(p.list)-1]
	last.raw = append(binary.AppendUvarint(last.raw, uint64(len(event))), event...)
	last.count++
	last.kept++
	last.alive++
}

// drop notes that an event was forgotten.
func (p *pages) drop(number uint64) {
	at := &p.list[number/pageEvents-p.first]
	if at.alive--; at.alive == 0 && at.count == pageEvents {
		at.raw, at.packed, at.kept = nil, nil, 0
	}
	for len(p.list) > 0 && p.list[0].alive == 0 && p.list[0].count == pageEvents {
		p.list, p.first = p.list[1:], p.first+1
	}
}

// pack compresses the pages that are full.
func (p *pages) pack() {
	for i := len(p.list) - 1; i >= 0 && p.list[i].raw != nil; i-- {
		if at := &p.list[i]; at.count == pageEvents {
			at.packed, at.raw = p.compress(at.raw), nil
		}
	}
}

// thin checks one page, and removes its forgotten events if they are at least half of it.
func (p *pages) thin(gone func(event []byte) bool) {
	if p.look++; p.look >= len(p.list) {
		p.look = 0
	}
	if len(p.list) == 0 || p.list[p.look].packed == nil || p.list[p.look].alive*2 > p.list[p.look].kept {
		return
	}
	at := &p.list[p.look]
	raw, err := unpack(at.packed)
	if err != nil {
		return // it stays as it is
	}
	var left []byte
	for d := (&decoder{rest: raw}); len(d.rest) > 0; {
		event := d.text()
		if gone(event) {
			event = nil
		}
		left = append(binary.AppendUvarint(left, uint64(len(event))), event...)
	}
	at.packed, at.kept = p.compress(left), at.alive
}

func (p *pages) compress(raw []byte) []byte {
	var b bytes.Buffer // writing to which never fails
	if p.writer == nil {
		p.writer, _ = flate.NewWriter(nil, flate.BestSpeed) // the level is valid
	}
	p.writer.Reset(&b)
	_, _ = p.writer.Write(raw)
	_ = p.writer.Close()
	return bytes.Clone(b.Bytes())
}

func unpack(packed []byte) ([]byte, error) {
	raw, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil {
		return nil, fmt.Errorf("a page of events: %w", err)
	}
	return raw, nil
}

// at returns the slot of an event, which can be read later even if the pages have changed.
func (p *pages) at(number uint64) slot {
	return slot{p.list[number/pageEvents-p.first], number}
}

// after returns the first slot of each page that can have an event after the instant.
func (p *pages) after(at int64) (slots []slot) {
	i := sort.Search(len(p.list), func(i int) bool { return p.list[i].first > at })
	for i = max(i-1, 0); i < len(p.list); i++ {
		slots = append(slots, p.at((p.first+uint64(i))*pageEvents))
	}
	return slots
}

// slot is the place of an event in a page, with the page as it was.
type slot struct {
	page   page
	number uint64 // of the event
}

// read calls use for each event of a page from the slot on, until use returns false.
func (c *pageCache) read(s slot, use func(leadership.Event) (more bool)) error {
	raw, err := c.raw(s)
	if err != nil {
		return err
	}
	d := &decoder{rest: raw}
	for i := uint64(0); len(d.rest) > 0; i++ {
		content := d.text()
		if i < s.number%pageEvents || len(content) == 0 {
			continue
		}
		if e, err := decodeEvent(content); err != nil || !use(e) {
			return err
		}
	}
	return d.err
}

// raw returns a page's content.
func (c *pageCache) raw(s slot) ([]byte, error) {
	if s.page.packed == nil {
		return s.page.raw, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.content != nil && c.number == s.number/pageEvents {
		return c.content, nil
	}
	content, err := unpack(s.page.packed)
	if err == nil {
		c.number, c.content = s.number/pageEvents, content
	}
	return content, err
}

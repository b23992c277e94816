package file

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"io"
	"sort"
	"sync"
)

// pageEvents is how many events a page has.
const pageEvents = 256

// pages keep events in the order of their commits, the full ones compressed.
type pages struct {
	list   []page
	first  uint64 // pages that were dropped before list
	look   int    // the page of list that thin looks at next
	writer *flate.Writer
	cache  *pageCache
}

// page has events, each with its length before it. A length of 0 stands for an event that is gone.
// What it holds is never changed in place, but for what follows the end of raw.
type page struct {
	raw    []byte // while it is not packed
	packed []byte
	count  int   // events, with those that are gone
	kept   int   // events in raw or packed that are not gone
	alive  int   // events that no election has forgotten
	first  int64 // the time of the first event, nanoseconds since 1970
}

// pageCache has the page that was read last.
type pageCache struct {
	mu     sync.Mutex
	number uint64
	raw    []byte // nil if there is none
}

func (p *pages) end() uint64 {
	if len(p.list) == 0 {
		return p.first * pageEvents
	}
	return (p.first+uint64(len(p.list))-1)*pageEvents + uint64(p.list[len(p.list)-1].count)
}

// add copies an event and returns its number.
func (p *pages) add(event []byte, at int64) uint64 {
	if n := len(p.list); n == 0 || p.list[n-1].count == pageEvents {
		p.list = append(p.list, page{first: at})
	}
	number := p.end()
	last := &p.list[len(p.list)-1]
	last.raw = append(binary.AppendUvarint(last.raw, uint64(len(event))), event...)
	last.count++
	last.kept++
	last.alive++
	return number
}

// drop forgets an event.
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

// thin looks at one page, and removes what is gone if that is half of it.
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

// read returns the events of a page from the slot on, one after the other, until use returns false.
func (p *pages) read(number uint64, use func(event []byte) (more bool)) error {
	raw, err := p.raw(number / pageEvents)
	if err != nil {
		return err
	}
	d := &decoder{rest: raw}
	for slot := uint64(0); len(d.rest) > 0; slot++ {
		if event := d.text(); slot >= number%pageEvents && len(event) > 0 && !use(event) {
			break
		}
	}
	return d.err
}

// raw returns a page's content.
func (p *pages) raw(number uint64) ([]byte, error) {
	at := &p.list[number-p.first]
	if at.packed == nil {
		return at.raw, nil
	}
	p.cache.mu.Lock()
	defer p.cache.mu.Unlock()
	if p.cache.raw != nil && p.cache.number == number {
		return p.cache.raw, nil
	}
	raw, err := unpack(at.packed)
	if err == nil {
		p.cache.number, p.cache.raw = number, raw
	}
	return raw, err
}

// after is the number of the first event of the first page that can have one after the instant.
func (p *pages) after(at int64) uint64 {
	i := sort.Search(len(p.list), func(i int) bool { return p.list[i].first > at })
	return (p.first + uint64(max(i-1, 0))) * pageEvents
}

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
	first  uint64       // pages that were dropped before list
	packed int          // so many pages of list are packed, or dropped
	halved map[int]bool // pages of list (counted with first) of which half was forgotten since they were packed
	writer *flate.Writer

	cache *pageCache
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

// append adds a packed page. It reports whether that is possible: the one before must be packed.
func (p *pages) append(whole page) bool {
	if p.packed != len(p.list) || whole.kept == 0 {
		return false
	}
	p.list = append(p.list, whole)
	p.packed++
	return true
}

// drop forgets an event.
func (p *pages) drop(number uint64) {
	i := int(number/pageEvents - p.first)
	at := &p.list[i]
	at.alive--
	switch {
	case at.count < pageEvents:
	case at.alive == 0:
		at.raw, at.packed, at.kept = nil, nil, 0
	case at.alive*2 <= at.kept:
		if p.halved == nil {
			p.halved = make(map[int]bool)
		}
		p.halved[i+int(p.first)] = true
	}
	for len(p.list) > 0 && p.list[0].alive == 0 && p.list[0].count == pageEvents {
		p.list, p.first, p.packed = p.list[1:], p.first+1, max(p.packed-1, 0)
	}
}

// pack compresses the pages that are full.
func (p *pages) pack() error {
	for ; p.packed < len(p.list) && p.list[p.packed].count == pageEvents; p.packed++ {
		if at := &p.list[p.packed]; at.alive > 0 {
			packed, err := p.compress(at.raw)
			if err != nil {
				return err
			}
			at.packed, at.raw = packed, nil
		}
	}
	return nil
}

// thin removes the events that are gone from pages that have many of them.
func (p *pages) thin(gone func(event []byte) bool) error {
	for i := range p.halved {
		delete(p.halved, i)
		if i -= int(p.first); i < 0 || i >= p.packed || p.list[i].alive == 0 {
			continue
		}
		at := &p.list[i]
		raw, err := unpack(at.packed)
		if err != nil {
			return err
		}
		var left []byte
		kept := 0
		for d := (&decoder{rest: raw}); len(d.rest) > 0; {
			event := d.text()
			if len(event) == 0 || gone(event) {
				left = append(left, 0)
				continue
			}
			left = append(binary.AppendUvarint(left, uint64(len(event))), event...)
			kept++
		}
		if at.packed, err = p.compress(left); err != nil {
			return err
		}
		at.kept = kept
	}
	return nil
}

func (p *pages) compress(raw []byte) ([]byte, error) {
	var b bytes.Buffer
	if p.writer == nil {
		p.writer, _ = flate.NewWriter(nil, flate.BestSpeed) // the level is valid
	}
	p.writer.Reset(&b)
	if _, err := p.writer.Write(raw); err != nil {
		return nil, err
	}
	if err := p.writer.Close(); err != nil {
		return nil, err
	}
	return bytes.Clone(b.Bytes()), nil
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

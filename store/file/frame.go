package file

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// format is the version of the format. Every file names it; another one is refused.
const format = 1

// The kinds of files.
const (
	kindLog      = "regentLG"
	kindSnapshot = "regentSN"
	kindState    = "regentST"
)

const (
	sector    = 512     // what a disk writes whole or not at all
	step      = 1 << 20 // a log grows by this much at a time
	headSize  = 48      // of a file
	frameHead = 16
	frameTail = 5
	alignment = 16 // of frames, so that a head lies within one sector
	lastByte  = 0xff
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// identity is the random id of a store. All checksums of frames begin with it, so no frame of
// another store is ever taken for one of this store.
type identity [16]byte

// seed returns the checksum of the id, with which the checksums of frames begin.
func (id identity) seed() uint32 { return crc32.Checksum(id[:], castagnoli) }

// fileHead is the beginning of every file.
type fileHead struct {
	kind     string
	id       identity
	number   uint64
	sequence uint64
}

func (h fileHead) encode() []byte {
	b := append(make([]byte, 0, headSize), h.kind...)
	b = binary.BigEndian.AppendUint32(b, format)
	b = append(b, h.id[:]...)
	b = binary.BigEndian.AppendUint64(b, h.number)
	b = binary.BigEndian.AppendUint64(b, h.sequence)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decodeHead is the inverse of encode. name is the name of the file.
func decodeHead(kind, name string, b []byte) (fileHead, error) {
	if len(b) < headSize || string(b[:8]) != kind {
		return fileHead{}, damaged(name, "it does not begin as such a file does")
	}
	if v := binary.BigEndian.Uint32(b[8:]); v != format {
		return fileHead{}, fmt.Errorf("%s: its format has version %d, and this program reads %d: use the version of regent that wrote it, or a newer one", name, v, format)
	}
	if crc32.Checksum(b[:headSize-4], castagnoli) != binary.BigEndian.Uint32(b[headSize-4:]) {
		return fileHead{}, damaged(name, "the checksum of its head is wrong")
	}
	return fileHead{kind, identity(b[12:28]), binary.BigEndian.Uint64(b[28:]), binary.BigEndian.Uint64(b[36:])}, nil
}

// damage is the error of a file whose content is wrong.
type damage struct{ name, why string }

func (d *damage) Error() string { return d.name + ": " + d.why }

func damaged(name, format string, args ...any) error {
	return &damage{name, fmt.Sprintf(format, args...)}
}

// torn is the range of a frame that was written in part.
type torn struct{ from, to int }

// beginFrame makes b an empty frame, to which a payload is appended.
func beginFrame(b []byte) []byte { return append(b[:0], make([]byte, frameHead)...) }

// endFrame completes a frame.
func endFrame(b []byte, seed uint32, sequence uint64) []byte {
	binary.BigEndian.PutUint32(b, uint32(len(b)-frameHead))
	binary.BigEndian.PutUint64(b[4:], sequence)
	binary.BigEndian.PutUint32(b[12:], headSum(seed, b))
	b = binary.BigEndian.AppendUint32(b, bodySum(seed, b))
	return append(b, lastByte)
}

func headSum(seed uint32, frame []byte) uint32 {
	return crc32.Update(seed, castagnoli, frame[:12])
}

// bodySum returns the checksum of a frame without its tail.
func bodySum(seed uint32, frame []byte) uint32 {
	return crc32.Update(crc32.Update(seed, castagnoli, frame[4:12]), castagnoli, frame[frameHead:])
}

func aligned(n int) int { return (n + alignment - 1) &^ (alignment - 1) }

// frames reads the frames of a file, one after the other.
type frames struct {
	name     string
	head     fileHead
	seed     uint32
	content  []byte // of the file; a multiple of alignment
	at       int    // where the next frame begins
	sequence uint64 // of the previous frame
	torn     *torn  // the last frame, if it was found to be torn
}

// next returns the payload of the next frame; nil if there are only zeros, or a torn frame.
func (f *frames) next() ([]byte, error) {
	rest := f.content[f.at:]
	if len(rest) < frameHead || zero(rest[:frameHead]) {
		return nil, f.ended(rest)
	}
	length, sequence := int(binary.BigEndian.Uint32(rest)), binary.BigEndian.Uint64(rest[4:])
	end := frameHead + length + frameTail
	switch {
	case headSum(f.seed, rest) != binary.BigEndian.Uint32(rest[12:]):
		return nil, f.damaged("the head of a commit is wrong")
	case sequence != f.sequence+1:
		return nil, f.damaged("commit %d follows commit %d", sequence, f.sequence)
	case end > len(rest):
		return nil, f.damaged("commit %d goes beyond the end of the file", sequence)
	}
	body, tail := rest[:end-frameTail], rest[end-frameTail:end]
	if bodySum(f.seed, body) != binary.BigEndian.Uint32(tail) || tail[4] != lastByte {
		return nil, f.unfinished(rest, end)
	}
	if next := aligned(end); !zero(rest[end:next]) {
		return nil, f.damaged("something was written behind commit %d", sequence)
	}
	f.at += aligned(end)
	f.sequence = sequence
	return body[frameHead:], nil
}

// ended checks the rest of the file. If it is not all zeros, it may be a frame whose first sector
// was not written.
func (f *frames) ended(rest []byte) error {
	behind := sector - f.at%sector // offset of the next sector
	switch {
	case zero(rest):
		return nil
	case !zero(rest[:min(behind, len(rest))]):
		return f.damaged("something was written where a commit has to begin")
	}
	for at := behind; at+frameHead <= len(rest); at += alignment {
		if head := rest[at:]; !zero(head[:frameHead]) && headSum(f.seed, head) == binary.BigEndian.Uint32(head[12:]) {
			return f.damaged("commit %d is missing, and commit %d is there", f.sequence+1, binary.BigEndian.Uint64(head[4:]))
		}
	}
	f.torn = &torn{f.at, f.at + len(bytes.TrimRight(rest, "\x00"))}
	return nil
}

// unfinished checks a frame whose head is right and whose body is not.
func (f *frames) unfinished(rest []byte, end int) error {
	if !zero(rest[end:]) {
		return f.damaged("the checksum of commit %d is wrong, and something follows it", f.sequence+1)
	}
	for at := sector - f.at%sector; at < end; at += sector {
		if zero(rest[at:min(at+sector, end)]) {
			f.torn = &torn{f.at, f.at + end}
			return nil
		}
	}
	return f.damaged("the checksum of commit %d is wrong", f.sequence+1)
}

func (f *frames) damaged(format string, args ...any) error {
	return damaged(f.name, "at byte %d: %s", f.at, fmt.Sprintf(format, args...))
}

// zero reports whether all bytes are zero.
func zero(b []byte) bool { return bytes.Count(b, []byte{0}) == len(b) }

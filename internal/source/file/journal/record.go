package journal

import (
	"encoding/binary"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// ID names what a record is about: an object as one file has it.
type ID struct {
	File string // absolute path
	Key  object.Key
}

// Record is what is kept of an object as one file has it.
type Record struct {
	ID
	// Born is when the object was first seen; zero for those of the first start.
	Born time.Time
	// Sum is a hash of the object.
	Sum uint64
	// Object is JSON.
	Object []byte
	// StandIn says that it is not the object, which never was valid, but what is in force
	// in its place.
	StandIn bool
	// First says that several files define the object, and this one's is in force.
	First bool
	// Forgotten takes back what was kept.
	Forgotten bool
}

// header begins every journal. Another form of records would have another one.
const header = "gatehouse journal 1\n"

// A record is framed by its length and a hash: what was written in part has another one.
const frame = 4 + 8

// erased is the hash of a record of a length that has been erased, in place of its own.
func erased(size []byte) uint64 { return ^xxhash.Sum64(size) }

// flags of a record.
const (
	forgotten = 1 << iota
	standIn
	first
)

// appendTo appends the record to text.
func (r *Record) appendTo(text []byte) []byte {
	start := len(text)
	text = append(text, make([]byte, frame)...)
	flags := byte(0)
	if r.Forgotten {
		flags |= forgotten
	}
	if r.StandIn {
		flags |= standIn
	}
	if r.First {
		flags |= first
	}
	text = append(text, flags)
	text = r.ID.appendTo(text)
	born := int64(0)
	if !r.Born.IsZero() {
		born = r.Born.UnixNano()
	}
	text = binary.AppendVarint(text, born)
	text = binary.AppendUvarint(text, r.Sum)
	text = append(text, r.Object...)
	body := text[start+frame:]
	binary.LittleEndian.PutUint32(text[start:], uint32(len(body)))
	binary.LittleEndian.PutUint64(text[start+4:], xxhash.Sum64(body))
	return text
}

// appendTo appends the ID as a record has it.
func (id *ID) appendTo(text []byte) []byte {
	for _, s := range [idTexts]string{id.File, id.Key.Kind.Group(), id.Key.Kind.Name(), id.Key.Namespace, id.Key.Name.Name} {
		text = binary.AppendUvarint(text, uint64(len(s)))
		text = append(text, s...)
	}
	return text
}

// idTexts is how many texts an ID has.
const idTexts = 5

// encodedID is the part of a record's body that is its ID.
func encodedID(body []byte) []byte {
	if len(body) == 0 {
		return nil
	}
	p := parser{rest: body[1:]}
	for range idTexts {
		p.bytes()
	}
	return body[1 : len(body)-len(p.rest)]
}

// next reads the first record of text and returns what follows it; false if there is no
// whole record. The record's object shares memory with text.
func next(text []byte) (r Record, rest []byte, ok bool) {
	if len(text) < frame {
		return Record{}, nil, false
	}
	size := uint64(binary.LittleEndian.Uint32(text))
	if size > uint64(len(text)-frame) {
		return Record{}, nil, false
	}
	body := text[frame : frame+size]
	if len(body) == 0 || binary.LittleEndian.Uint64(text[4:]) != xxhash.Sum64(body) {
		return Record{}, nil, false
	}
	r.Forgotten, r.StandIn = body[0]&forgotten != 0, body[0]&standIn != 0
	r.First = body[0]&first != 0
	p := parser{rest: body[1:]}
	r.ID = p.id()
	if born := p.signed(); born != 0 {
		r.Born = time.Unix(0, born)
	}
	r.Sum = p.number()
	r.Object = p.rest
	return r, text[frame+size:], !p.bad
}

// parser reads the fields of a record.
type parser struct {
	rest []byte
	bad  bool
}

func (p *parser) id() (id ID) {
	id.File = p.text()
	group, kind := p.text(), p.text()
	id.Key.Kind = object.KindOf(group, kind)
	id.Key.Namespace, id.Key.Name.Name = p.text(), p.text()
	return id
}

func (p *parser) number() uint64 {
	v, n := binary.Uvarint(p.rest)
	return advance(p, v, n)
}

func (p *parser) signed() int64 {
	v, n := binary.Varint(p.rest)
	return advance(p, v, n)
}

func advance[T int64 | uint64](p *parser, v T, n int) T {
	if n <= 0 {
		p.bad, p.rest = true, nil
		return 0
	}
	p.rest = p.rest[n:]
	return v
}

func (p *parser) text() string { return string(p.bytes()) }

func (p *parser) bytes() []byte {
	n := p.number()
	if n > uint64(len(p.rest)) {
		p.bad, p.rest = true, nil
		return nil
	}
	b := p.rest[:n]
	p.rest = p.rest[n:]
	return b
}

// parse reads the records of a journal, and says how long that part of it is which could
// be read.
func parse(text []byte) (records []Record, good int) {
	if len(text) < len(header) || string(text[:len(header)]) != header {
		return nil, 0
	}
	rest := text[len(header):]
	for {
		if n := sizeErased(rest); n > 0 {
			rest = rest[n:]
			continue
		}
		r, after, ok := next(rest)
		if !ok {
			return records, len(text) - len(rest)
		}
		records, rest = append(records, r), after
	}
}

// sizeErased returns how long the first record of a text is that has been erased; 0 if it has
// not been. What is left of it doesn't matter.
func sizeErased(text []byte) int {
	if len(text) < frame || binary.LittleEndian.Uint64(text[4:]) != erased(text[:4]) {
		return 0
	}
	size := uint64(binary.LittleEndian.Uint32(text))
	if size > uint64(len(text)-frame) {
		return 0
	}
	return frame + int(size)
}

// live returns about how many bytes the records take that no later one takes the place of.
func live(records []Record) (size int64) {
	last := map[ID]int{}
	for i := range records {
		last[records[i].ID] = i
	}
	for _, i := range last {
		if r := &records[i]; !r.Forgotten {
			size += int64(frame + len(r.File) + len(r.Key.Namespace) + len(r.Key.Name.Name) + len(r.Object))
		}
	}
	return size
}

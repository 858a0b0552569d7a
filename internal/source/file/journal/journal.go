package journal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
	"syscall"
)

// MaxSize bounds the file, in bytes: four times the largest file that is read.
const MaxSize = 256 << 20

// Name is that of the file in the state directory, and temporary that of the one which takes
// its place.
const (
	Name      = "kept"
	temporary = "kept.new"
)

// slack is how much may be superseded before a journal is worth rewriting, in bytes.
const slack = 1 << 20

// ErrTooLarge says that a journal would be larger than MaxSize.
var ErrTooLarge = fmt.Errorf("the last valid versions are larger than %d MiB together", MaxSize>>20)

// Journal is open for one process, which holds the state directory's lock. It is for one
// goroutine.
type Journal struct {
	root *os.Root
	file *os.File
	size int64
	base int64 // how much of it was not superseded when it was opened, first filled or rewritten
	// Lost is how many bytes at its end could not be read when it was opened: they were cut short,
	// or something else than a journal wrote there.
	Lost int
}

// Open opens the journal of a state directory and reads what is there. Fresh says that
// there was none, or none that can be read.
func Open(dir string) (j *Journal, records []Record, fresh bool, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, false, err
	}
	defer func() {
		if err != nil {
			_ = root.Close()
		}
	}()
	_ = root.Remove(temporary) // of a process that was killed
	// The name of a symbolic link leads elsewhere, and nobody but the user can make one
	// here: it is not followed.
	f, err := root.OpenFile(Name, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, nil, false, err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	if err := f.Chmod(0o600); err != nil {
		return nil, nil, false, err
	}
	text, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return nil, nil, false, err
	}
	size := len(text)
	if size > MaxSize {
		text = nil
	}
	records, good := parse(text)
	j = &Journal{root: root, file: f, size: int64(good), base: live(records), Lost: size - good}
	if good == 0 {
		records, fresh = nil, true
		if err := j.begin(); err != nil {
			return nil, nil, false, err
		}
	}
	// What follows the last whole record was cut short.
	if err := f.Truncate(j.size); err != nil {
		return nil, nil, false, err
	}
	return j, records, fresh, nil
}

// begin makes the file an empty journal.
func (j *Journal) begin() error {
	if err := j.file.Truncate(0); err != nil {
		return err
	}
	j.size, j.base = 0, int64(len(header))
	return j.write([]byte(header))
}

// write adds text at the end. What a write that fails has left is cut off: whole records of it
// would be read again behind a shorter one that is written in their place.
func (j *Journal) write(text []byte) error {
	if j.size+int64(len(text)) > MaxSize {
		return ErrTooLarge
	}
	if _, err := j.file.WriteAt(text, j.size); err != nil {
		return errors.Join(err, j.file.Truncate(j.size))
	}
	j.size += int64(len(text))
	return nil
}

// chunk is how much is gathered before it is written, in bytes.
const chunk = 1 << 20

// Append adds records, each of which takes the place of earlier ones of its ID.
func (j *Journal) Append(records iter.Seq[Record]) error {
	var text []byte
	for r := range records {
		if text = r.appendTo(text); len(text) >= chunk {
			if err := j.write(text); err != nil {
				return err
			}
			text = text[:0]
		}
	}
	return j.write(text)
}

// Filled says that nothing in the journal is superseded yet.
func (j *Journal) Filled() { j.base = j.size }

// Wasteful reports whether most of the journal may be superseded, so that it is worth
// rewriting.
func (j *Journal) Wasteful() bool { return j.size > 2*j.base+slack }

// Rewrite replaces all records. Until it is done, the journal is as it was before.
func (j *Journal) Rewrite(records iter.Seq[Record]) error {
	f, err := j.root.OpenFile(temporary, os.O_RDWR|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	next := &Journal{root: j.root, file: f}
	err = next.write([]byte(header))
	if err == nil {
		err = next.Append(records)
	}
	if err == nil {
		err = f.Sync() // lest the name is there before the content, if the machine stops
	}
	if err == nil {
		err = j.root.Rename(temporary, Name)
	}
	if err != nil {
		_ = f.Close()
		_ = j.root.Remove(temporary)
		return err
	}
	_ = j.file.Close()
	j.file, j.size, j.base = f, next.size, next.size
	return nil
}

// End is where the next record goes.
func (j *Journal) End() int64 { return j.size }

// Erase removes all records of IDs that stand before an end. It takes no room, so that it
// goes on a full disk. A kill costs nothing but what was to be erased. It reads the whole
// journal up to there.
func (j *Journal) Erase(ids map[ID]bool, end int64) error {
	encoded := make(map[string]bool, len(ids))
	for id := range ids {
		encoded[string(id.appendTo(nil))] = true
	}
	in := bufio.NewReaderSize(io.NewSectionReader(j.file, 0, end), chunk)
	var head [frame]byte
	var body []byte
	at := int64(len(header))
	if _, err := in.Discard(len(header)); err != nil {
		return err
	}
	for at < end {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return err
		}
		size := int64(binary.LittleEndian.Uint32(head[:]))
		if size > end-at-frame {
			return io.ErrUnexpectedEOF
		}
		body = slices.Grow(body[:0], int(size))[:size]
		if _, err := io.ReadFull(in, body); err != nil {
			return err
		}
		mark := erased(head[:4])
		if binary.LittleEndian.Uint64(head[4:]) != mark && encoded[string(encodedID(body))] {
			// First the mark, which a kill doesn't divide: from there the rest doesn't matter.
			clear(body)
			if _, err := j.file.WriteAt(binary.LittleEndian.AppendUint64(nil, mark), at+4); err != nil {
				return err
			}
			if _, err := j.file.WriteAt(body, at+frame); err != nil {
				return err
			}
		}
		at += frame + size
	}
	return nil
}

// Forget removes the file: what is kept there is not kept up to date any more.
func (j *Journal) Forget() error {
	if err := j.root.Remove(Name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Close lets go of the file.
func (j *Journal) Close() error {
	return errors.Join(j.file.Close(), j.root.Close())
}

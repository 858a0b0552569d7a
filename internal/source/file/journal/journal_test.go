package journal

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

func id(name string) ID {
	return ID{File: "/in/" + name + ".yaml", Key: object.Key{Kind: object.KindOf("g.example", "Thing"), Name: object.Name{Namespace: "ns", Name: name}}}
}

var some = []Record{
	{ID: id("a"), Born: time.Unix(1, 2), Sum: 1 << 63, Object: []byte(`{"a": 1}`)},
	{ID: id("b"), Object: []byte(`{}`), StandIn: true},
	{ID: id("a"), Forgotten: true},
	{ID: ID{}, Object: []byte("\x00\xff")},
}

func same(t *testing.T, what string, want, got []Record) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.AllowUnexported(object.Kind{}), cmp.Comparer(object.Kind.Equal)); diff != "" {
		t.Errorf("%s: -want +got:\n%s", what, diff)
	}
}

func open(t *testing.T, dir string) (*Journal, []Record, bool) {
	t.Helper()
	j, records, fresh, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j, records, fresh
}

// What was written is read, in any number of turns, and nobody else can read it.
func TestJournal(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, Name)
	if err := os.WriteFile(path, nil, 0o644); err != nil { //nolint:gosec // it is to be made private
		t.Fatal(err)
	}
	j, records, fresh := open(t, dir)
	if !fresh || len(records) > 0 {
		t.Errorf("new: %v %v", records, fresh)
	}
	if err := j.Append(slices.Values(some[:2])); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(slices.Values(some[2:])); err != nil {
		t.Fatal(err)
	}
	_ = j.Close()
	j, records, fresh = open(t, dir)
	if fresh {
		t.Error("a journal with records is a new one")
	}
	same(t, "appended", some, records)
	if err := j.Rewrite(slices.Values(some[1:2])); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(slices.Values(some[3:])); err != nil {
		t.Fatal(err)
	}
	_ = j.Close()
	_, records, _ = open(t, dir)
	same(t, "rewritten", []Record{some[1], some[3]}, records)
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// A write that is cut short costs its own records and nothing before them.
func TestCutShort(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, Name)
	text, ends := []byte(header), []int{}
	for i := range some {
		text = some[i].appendTo(text)
		ends = append(ends, len(text))
	}
	for n := range len(text) {
		for _, tail := range []string{"", "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"} {
			cut := append(slices.Clone(text[:n]), tail...)
			if err := os.WriteFile(path, cut, 0o600); err != nil {
				t.Fatal(err)
			}
			written := n // the tail may be what was to be written
			for written < min(len(cut), len(text)) && cut[written] == text[written] {
				written++
			}
			whole := 0
			for _, end := range ends {
				if end <= written {
					whole++
				}
			}
			j, records, fresh := open(t, dir)
			same(t, fmt.Sprintf("%d bytes", n), some[:whole], records)
			if fresh != (n < len(header)) {
				t.Errorf("%d bytes: fresh is %v", n, fresh)
			}
			if err := j.Append(slices.Values(some[:1])); err != nil {
				t.Fatal(err)
			}
			_ = j.Close()
			again, records, _ := open(t, dir)
			same(t, fmt.Sprintf("%d bytes and a record", n), append(slices.Clone(some[:whole]), some[0]), records)
			_ = again.Close()
		}
	}
}

// A changed byte costs no more than what stands behind it.
func TestChangedByte(t *testing.T) {
	text := []byte(header)
	for i := range some {
		text = some[i].appendTo(text)
	}
	for i := range text {
		text[i] ^= 0x40
		records, _ := parse(text)
		text[i] ^= 0x40
		if len(records) >= len(some) {
			t.Errorf("byte %d: all is read", i)
		}
		same(t, "before the byte", some[:len(records)], records)
	}
}

// The journal does not follow a link, and its size is bounded.
func TestBounds(t *testing.T) {
	dir := t.TempDir()
	elsewhere := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(elsewhere, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, filepath.Join(dir, Name)); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := Open(dir); err == nil {
		t.Error("a link is followed")
	}
	if text, err := os.ReadFile(elsewhere); err != nil || string(text) != "kept" {
		t.Errorf("the link's target is %q, %v", text, err)
	}
	dir = t.TempDir()
	j, _, _ := open(t, dir)
	many := func(n int) func(func(Record) bool) {
		return func(yield func(Record) bool) {
			for range n {
				if !yield(Record{ID: id("a"), Object: []byte(strings.Repeat("a", 1000))}) {
					return
				}
			}
		}
	}
	for !j.Wasteful() {
		if err := j.Append(many(100)); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Rewrite(many(1)); err != nil || j.Wasteful() {
		t.Errorf("wasteful after it was rewritten; %v", err)
	}
	if info, err := os.Stat(filepath.Join(dir, Name)); err != nil || info.Size() > 2000 || info.Size() != j.size {
		t.Errorf("%v, %v", info.Size(), err)
	}
	j.size = MaxSize - 100
	if err := j.Append(many(1)); err == nil {
		t.Error("the size is not bounded")
	}
	if err := j.Forget(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, Name)); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}

// killed is the environment variable by which TestKilled starts itself to be killed.
const killed = "GATEHOUSE_TEST_JOURNAL"

// A process that is killed while it writes loses nothing that it had written.
func TestKilled(t *testing.T) {
	if dir := os.Getenv(killed); dir != "" {
		writeForever(t, dir)
		return
	}
	dir := t.TempDir()
	for range 5 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		cmd.Env = append(os.Environ(), killed+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		last := 0
		for lines.Scan() {
			if last, err = strconv.Atoi(lines.Text()); err != nil {
				t.Fatal(lines.Text())
			}
			if last%50 == 49 {
				break
			}
		}
		_ = cmd.Process.Kill()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
		j, records, fresh := open(t, dir)
		_ = j.Close()
		found := 0
		for _, r := range records {
			found = max(found, int(r.Sum))
		}
		if fresh || found < last {
			t.Fatalf("fresh is %v, and record %d is the last, want at least %d", fresh, found, last)
		}
	}
}

func writeForever(t *testing.T, dir string) {
	j, records, _ := open(t, dir)
	n := 0
	for _, r := range records {
		n = max(n, int(r.Sum))
	}
	for {
		n++
		record := Record{ID: id("a"), Sum: uint64(n), Object: []byte(strings.Repeat("a", 1+n%60_000))}
		write := j.Append
		if n%7 == 0 {
			write = j.Rewrite
		}
		if err := write(slices.Values([]Record{record})); err != nil {
			t.Fatal(err)
		}
		fmt.Println(n)
	}
}

// What is erased is gone, all that stands beside it stays, and a kill in between costs neither.
func TestErase(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, Name)
	j, _, _ := open(t, dir)
	records := []Record{
		{ID: id("a"), Object: []byte("first-word")}, {ID: id("b"), Object: []byte("other")},
		{ID: id("a"), Object: []byte("second-word")}, {ID: id("a"), Object: []byte("third-word")},
	}
	if err := j.Append(slices.Values(records[:3])); err != nil {
		t.Fatal(err)
	}
	end := j.End()
	if err := j.Append(slices.Values(records[3:])); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := j.Erase(map[ID]bool{id("a"): true}, end); err != nil {
			t.Fatal(err)
		}
	}
	_ = j.Close()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"first", "second"} {
		if strings.Contains(string(text), word) {
			t.Errorf("%s is still there", word)
		}
	}
	j, got, _ := open(t, dir)
	_ = j.Close()
	same(t, "erased", []Record{records[1], records[3]}, got)
	// Between the two writes, the mark is there and the body is anything.
	text[len(header)+frame+3] = 'x'
	if got, good := parse(text); good != len(text) {
		t.Errorf("%v, and %d of %d bytes", got, good, len(text))
	}
}

// What is superseded counts as such in the next process too: otherwise each one would let the
// journal grow to twice of what it found.
func TestWastefulAfterRestart(t *testing.T) {
	dir := t.TempDir()
	j, _, _ := open(t, dir)
	record := Record{ID: id("a"), Object: []byte(strings.Repeat("a", slack/8))}
	for range 20 {
		if err := j.Append(slices.Values([]Record{record})); err != nil {
			t.Fatal(err)
		}
	}
	_ = j.Close()
	if j, _, _ = open(t, dir); !j.Wasteful() {
		t.Errorf("%d bytes of one record of %d are not too many", j.size, len(record.Object))
	}
}

// What an empty journal is filled with isn't written twice: nothing of it is superseded.
func TestNotWastefulAfterFirst(t *testing.T) {
	j, _, _ := open(t, t.TempDir())
	all := func(yield func(Record) bool) {
		for i := range 20000 {
			if !yield(Record{ID: id(strconv.Itoa(i)), Object: []byte(strings.Repeat("x", 500))}) {
				return
			}
		}
	}
	err := j.Append(all)
	if j.Filled(); err != nil || j.size < slack || j.Wasteful() {
		t.Errorf("of %d bytes nothing is superseded; wasteful: %v, %v", j.size, j.Wasteful(), err)
	}
	if err := j.Append(all); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(all); err != nil || !j.Wasteful() {
		t.Errorf("of %d bytes a third counts; wasteful: %v, %v", j.size, j.Wasteful(), err)
	}
}

// What a write has left that failed in the middle doesn't come back behind what is written in
// its place.
func TestFailedWrite(t *testing.T) {
	dir := t.TempDir()
	j, _, _ := open(t, dir)
	of := func(name, version string) Record { return Record{ID: id(name), Object: []byte(version)} }
	records := []Record{of("a", "2"), of("b", "2"), of("c", "2")}
	size := j.End()
	for _, r := range records {
		size += int64(len(r.appendTo(nil)))
	}
	signal.Ignore(syscall.SIGXFSZ)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: uint64(size - 1), Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	err := j.Append(slices.Values(records))
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if err == nil {
		t.Fatal("there was room")
	}
	if err := j.Append(slices.Values([]Record{of("b", "3")})); err != nil {
		t.Fatal(err)
	}
	_ = j.Close()
	j, got, _ := open(t, dir)
	_ = j.Close()
	same(t, "after a write that failed", []Record{of("b", "3")}, got)
}

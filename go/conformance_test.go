package petal

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const conformance = "../testdata/conformance"

// hexBytes is written as hexadecimal digits.
type hexBytes []byte

func (b *hexBytes) UnmarshalText(text []byte) (err error) {
	*b, err = hex.DecodeString(string(text))
	return err
}

// readLines returns the objects of a file of the set.
func readLines[T any](t testing.TB, name string) (objects []T) {
	t.Helper()
	text := readFile(t, name)
	for _, line := range bytes.Split(bytes.TrimSpace(text), []byte("\n")) {
		var object T
		if err := json.Unmarshal(line, &object); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		objects = append(objects, object)
	}
	return objects
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(conformance, name))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

type fileLine struct {
	File, Type        string
	Layout, Algorithm uint16
	Secret            hexBytes
}

func isRead(layout uint16) bool {
	switch layout {
	case bloom, classic, counting, countingClassic, staticRibbon, cascade, staticFuse:
		return true
	}
	return false
}

type answerLine struct {
	Text    *string
	Number  *string
	Bytes   hexBytes
	Hash    string
	Present bool
}

func (a answerLine) ask(f *Filter) (present bool, hashed uint64) {
	switch {
	case a.Text != nil:
		return f.Contains(*a.Text), f.hasher.hash([]byte(*a.Text))
	case a.Number != nil:
		number, _ := strconv.ParseUint(*a.Number, 10, 64)
		return f.ContainsUint64(number), f.hasher.hash(binary.LittleEndian.AppendUint64(nil, number))
	default:
		return f.ContainsBytes(a.Bytes), f.hasher.hash(a.Bytes)
	}
}

func TestFilesGiveTheirAnswersOrAreRefusedByName(t *testing.T) {
	read := 0
	for _, line := range readLines[fileLine](t, "files.jsonl") {
		path := filepath.Join(conformance, line.File)
		for name, open := range map[string]func(string, ...Option) (*Filter, error){"Open": Open, "OpenMapped": OpenMapped} {
			f, err := open(path, WithSecret(line.Secret))
			if !isRead(line.Layout) {
				var e *Error
				if !errors.As(err, &e) || e.Kind != ErrUnsupported || e.Type != line.Type || e.Path != path {
					t.Errorf("%s: %s: %v", name, line.File, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s: %s: %v", name, line.File, err)
			}
			if err := f.Verify(); err != nil || f.Type() != line.Type {
				t.Errorf("%s: %s: %v, %v", name, line.File, err, f.Type())
			}
			for _, answer := range readLines[answerLine](t, strings.TrimSuffix(line.File, "petal")+"jsonl") {
				present, hashed := answer.ask(f)
				if present != answer.Present || fmt.Sprintf("%016x", hashed) != answer.Hash {
					t.Errorf("%s: %s: %+v: %v, hash %016x", name, line.File, answer, present, hashed)
				}
				read++
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if read < 5000 {
		t.Errorf("only %d answers", read)
	}
}

func TestHashesAreThoseOfTheSet(t *testing.T) {
	type hashLine struct {
		Algorithm uint16
		Seed, Key hexBytes
		Hash      string
	}
	for _, line := range readLines[hashLine](t, "hashes.jsonl") {
		seed := [2]uint64{word(line.Seed, 0), word(line.Seed, 8)}
		h, err := newHasher(line.Algorithm, seed, nil)
		if got := fmt.Sprintf("%016x", h.hash(line.Key)); err != nil || got != line.Hash {
			t.Errorf("hash %d of %x: %s, not %s (%v)", line.Algorithm, line.Key, got, line.Hash, err)
		}
	}
}

// The numbers are of xxHash's Python package.
func TestChecksumsAreXxh3(t *testing.T) {
	for length, want := range map[int]uint64{
		0: 0x2d06800538d394c2, 17: 0x621f018aad19b14a, 64: 0x1b1bf114c7371f1b, 128: 0xe9549af9a74093e6,
		129: 0xb54ad1cd8a4c84b9, 192: 0xe9d1b77523018265, 240: 0x3e136902ec966624, 241: 0xbd7d29b6ba966d6a,
		248: 0x98a60eb2586233aa, 256: 0xff5a1cefade75bb9, 320: 0x1a53d8c9504de446, 1024: 0xdc5acf0b043c445b,
		1025: 0xc856c953bbdbc807, 1088: 0x1abb96b061cd5757, 2049: 0x036bbe6219dfccda, 5000: 0x308f149a673a1625,
	} {
		data := make([]byte, length)
		for i := range data {
			data[i] = byte(7*i + length)
		}
		if sum := checksum(data); sum != want {
			t.Errorf("%d bytes: %016x, not %016x", length, sum, want)
		}
	}
}

type hostileLine struct {
	File   string
	Edits  [][2]json.RawMessage
	Length int
	Error  string
}

// bytes returns the changed copy.
func (l hostileLine) bytes(t *testing.T) []byte {
	file := readFile(t, l.File)
	for _, edit := range l.Edits {
		var at int
		var changed hexBytes
		if json.Unmarshal(edit[0], &at) != nil || json.Unmarshal(edit[1], &changed) != nil {
			t.Fatalf("no edit: %s", edit)
		}
		copy(file[at:], changed)
	}
	return append(file, make([]byte, l.Length)...)[:l.Length]
}

func TestHostileFilesAreRefused(t *testing.T) {
	kinds := map[string]Kind{"foreign": ErrForeign, "unsupported": ErrUnsupported, "damaged": ErrDamaged}
	opened := 0
	for _, line := range readLines[hostileLine](t, "hostile.jsonl") {
		file := line.bytes(t)
		_, err := FromBytes(file)
		var e *Error
		if !errors.As(err, &e) {
			t.Fatalf("%+v: %v", line, err)
		}
		// A type that is not read is refused before its parameters are checked.
		layout := readFile(t, line.File)[layoutAt]
		if e.Kind != kinds[line.Error] && (e.Kind != ErrUnsupported || isRead(uint16(layout))) {
			t.Errorf("%+v: %v", line, err)
		}
		if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "; ") {
			t.Errorf("no line with a remedy: %v", err)
		}
		// As if it were mapped.
		if f, err := load(file, nil); err == nil {
			ask(f)
			opened++
		}
	}
	if opened == 0 {
		t.Error("no file opens without its checksum")
	}
}

// ask queries keys of all types. Their number lets each part of small data be read.
func ask(f *Filter) (present int) {
	for i := uint64(0); i < 200; i++ {
		for _, answer := range []bool{f.ContainsUint64(i), f.Contains(strconv.Itoa(int(i)))} {
			if answer {
				present++
			}
		}
	}
	return present
}

func FuzzFromBytes(f *testing.F) {
	for _, line := range readLines[fileLine](f, "files.jsonl") {
		if isRead(line.Layout) {
			f.Add(readFile(f, line.File))
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		secret := WithSecret([]byte("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"))
		if filter, err := FromBytes(file, secret); err == nil {
			ask(filter)
		}
		if len(file) < headerBytes {
			return
		}
		// With valid checksums, most changes get further.
		file = append([]byte{}, file...)
		end := headerBytes + uint64(half(file, 32))
		if dataAt := word(file, 16); end <= uint64(len(file)) && dataAt <= uint64(len(file)) && uint64(len(file))-dataAt > 16 {
			binary.LittleEndian.PutUint64(file[240:], checksum(file[dataAt:]))
			summed := append(append([]byte{}, file[:248]...), file[headerBytes:end]...)
			binary.LittleEndian.PutUint64(file[248:], checksum(summed))
		}
		filter, err := load(file, []Option{secret})
		if err != nil {
			return
		}
		present := ask(filter)
		if filter.Verify() == nil {
			again, err := FromBytes(file, secret)
			if err != nil || ask(again) != present {
				t.Errorf("a valid filter is not the same again: %v", err)
			}
		}
	})
}

func TestConcurrentReads(t *testing.T) {
	for _, name := range []string{"bloom-sip", "classic-odd", "static-layers", "static-fuse", "cascade-shards"} {
		f, err := OpenMapped(filepath.Join(conformance, name+".petal"))
		if err != nil {
			t.Fatal(err)
		}
		want := ask(f)
		var group sync.WaitGroup
		for i := 0; i < 8; i++ {
			group.Add(1)
			go func() {
				defer group.Done()
				if ask(f) != want || f.Verify() != nil {
					t.Errorf("%s: goroutines have different answers", name)
				}
			}()
		}
		group.Wait()
		f.Close()
	}
}

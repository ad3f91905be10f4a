package petal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func openSet(t testing.TB, name string, opts ...Option) *Filter {
	t.Helper()
	f, err := Open(filepath.Join(conformance, name+".petal"), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestQueriesDoNotAllocate(t *testing.T) {
	text, bytes, sum := strings.Repeat("a long key ", 30), []byte("bytes"), 0
	for _, name := range []string{
		"bloom-rapid", "bloom-sip", "classic-rapid-keyed", "counting-removed", "static-layers", "static-fuse", "cascade-sip",
	} {
		f := openSet(t, name)
		allocations := testing.AllocsPerRun(100, func() {
			for _, present := range []bool{f.Contains(text), f.ContainsBytes(bytes), f.ContainsUint64(7)} {
				if present {
					sum++
				}
			}
		})
		if allocations != 0 {
			t.Errorf("%s: %v allocations", name, allocations)
		}
	}
}

func TestSecretApartIsNeeded(t *testing.T) {
	path := filepath.Join(conformance, "bloom-secret-apart.petal")
	for _, opts := range [][]Option{nil, {WithSecret(nil)}, {WithSecret(make([]byte, 16))}, {WithSecret(make([]byte, 17))}} {
		for _, open := range []func(string, ...Option) (*Filter, error){Open, OpenMapped} {
			if f, err := open(path, opts...); f != nil || !errors.Is(err, ErrSecret) {
				t.Errorf("%v", err)
			}
		}
	}
}

func TestErrorsNameFileAndByte(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.petal")
	file := readFile(t, "bloom-rapid.petal")
	file[len(file)-1] ^= 1
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(path)
	var e *Error
	if !errors.As(err, &e) || !errors.Is(err, ErrDamaged) || e.Path != path || e.Offset != page {
		t.Errorf("%v", err)
	}
	mapped, err := OpenMapped(path)
	if err != nil || !errors.Is(mapped.Verify(), ErrDamaged) {
		t.Errorf("a mapped file is verified only on demand: %v", err)
	}
	if _, err := OpenMapped(t.TempDir()); err == nil {
		t.Error("a folder is opened")
	}
	if _, err := OpenMapped(path + ".missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if os.WriteFile(path, nil, 0o600) != nil {
		t.Fatal("the file is not written")
	}
	if _, err := OpenMapped(path); !errors.Is(err, ErrForeign) {
		t.Errorf("%v", err)
	}
}

func TestQueryAfterClosePanics(t *testing.T) {
	f, err := OpenMapped(filepath.Join(conformance, "static-fuse.petal"))
	if err != nil || f.Close() != nil || f.Close() != nil {
		t.Fatal(err)
	}
	if !errors.Is(f.Verify(), os.ErrClosed) {
		t.Error("a closed filter is verified")
	}
	defer func() {
		if recover() == nil {
			t.Error("a closed filter is queried")
		}
	}()
	f.Contains("one")
}

func BenchmarkContains(b *testing.B) {
	for _, name := range []string{
		"bloom-rapid", "bloom-sip", "classic-rapid", "static-layers", "static-fuse-shards", "cascade-shards",
	} {
		b.Run(name, func(b *testing.B) {
			f, present := openSet(b, name), 0
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; i < b.N; i++ {
				if f.ContainsUint64(uint64(i)) {
					present++
				}
			}
		})
	}
}

func BenchmarkVerify(b *testing.B) {
	data := make([]byte, 1<<20)
	b.SetBytes(int64(len(data)))
	for i := 0; i < b.N; i++ {
		checksum(data)
	}
}

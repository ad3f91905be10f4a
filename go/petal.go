// Package petal queries .petal files: filters that answer whether a set contains a key. Such an answer is exact if it
// is no, and wrong at the false-positive rate of the filter if it is yes.
//
// It reads the types that are published: Bloom filters (bloom, classic, counting), static filters (static,
// static-fuse) and cascades. Files are built with the petal program, or with petal's packages for Rust and Python.
//
// A key is its bytes. [Filter.Contains] takes text as UTF-8, and [Filter.ContainsUint64] a number as petal's other
// packages hash an integer. A line of a file that petal build has read is the text without its line end.
package petal

import (
	"encoding/binary"
	"os"
)

// Filter is an open file. Any number of goroutines may query it at the same time.
type Filter struct {
	header *header
	file   []byte
	layout uint16
	hasher hasher
	unmap  func() error
	// By the layout, one of these; ribbons has both filters of a cascade.
	bits    bitArray
	ribbons []*ribbon
	fuse    *fuse
}

// Option is an option of opening.
type Option func(*options)

type options struct{ secret []byte }

// WithSecret gives the 16 bytes of a filter whose secret is not in its file. Other filters ignore it.
func WithSecret(secret []byte) Option {
	secret = append([]byte{}, secret...)
	return func(o *options) { o.secret = secret }
}

// Open reads a whole file and verifies it.
func Open(path string, opts ...Option) (*Filter, error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f, err := FromBytes(file, opts...)
	return f, withPath(err, path)
}

// OpenMapped maps a file into memory, so that queries read only the pages that they need. It checks the header, the
// length and the numbers that give the positions of the data; [Filter.Verify] checks the rest. Until then damage to
// the data gives wrong answers, but never an access outside of the file.
//
// Replace a mapped file by renaming another one, as petal does. If it is cut while it is mapped, the system stops the
// program at the next query. On Windows the file is read, not mapped.
func OpenMapped(path string, opts ...Option) (*Filter, error) {
	file, unmap, err := mapFile(path)
	if err != nil {
		return nil, err
	}
	f, err := load(file, opts)
	if err != nil {
		unmap()
		return nil, withPath(err, path)
	}
	f.unmap = unmap
	return f, nil
}

// FromBytes verifies and opens the bytes of a file. The filter uses them: they must not change.
func FromBytes(file []byte, opts ...Option) (*Filter, error) {
	f, err := load(file, opts)
	if err == nil {
		err = f.Verify()
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

func withPath(err error, path string) error {
	if e, ok := err.(*Error); ok {
		e.Path = path
	}
	return err
}

// load checks all that positions in the file follow from.
func load(file []byte, opts []Option) (*Filter, error) {
	h, err := parseHeader(file)
	if err != nil {
		return nil, err
	}
	f := &Filter{header: h, file: file, layout: h.layout}
	data := file[h.dataAt:]
	switch h.layout {
	case bloom, classic, counting, countingClassic:
		f.bits, err = loadBits(h, data)
	case staticRibbon:
		var c checks
		if c.noProbes(h, 2); c.err != nil {
			return nil, c.err
		}
		columns, layers := field{h.parameters[0], parameterAt}, field{h.parameters[1], parameterAt + 8}
		f.ribbons = make([]*ribbon, 1)
		f.ribbons[0], err = loadRibbon(field{h.extent, extentAt}, columns, layers, data, h.dataAt)
	case cascade:
		f.ribbons, err = loadCascade(h, data)
	case staticFuse:
		f.fuse, err = loadFuse(h, data)
	default:
		err = unsupported(typeNames[h.layout])
	}
	if err != nil {
		return nil, err
	}
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	f.hasher, err = newHasher(h.algorithm, h.seed, o.secret)
	return f, err
}

// Contains returns whether the filter contains a text, by its UTF-8 bytes.
func (f *Filter) Contains(key string) bool { return f.containsHash(f.hasher.hash(bytesOf(key))) }

// ContainsBytes returns whether the filter contains these bytes.
func (f *Filter) ContainsBytes(key []byte) bool { return f.containsHash(f.hasher.hash(key)) }

// ContainsUint64 returns whether the filter contains a number, by its 8 bytes, the lowest first. A number that was
// inserted as text is another key.
func (f *Filter) ContainsUint64(key uint64) bool {
	var bytes [8]byte
	binary.LittleEndian.PutUint64(bytes[:], key)
	return f.ContainsBytes(bytes[:])
}

func (f *Filter) containsHash(hash uint64) bool {
	switch f.layout {
	case bloom, counting:
		return f.bits.containsBlocked(hash)
	case classic, countingClassic:
		return f.bits.containsClassic(hash)
	case staticRibbon:
		return f.ribbons[0].contains(hash)
	case cascade:
		return f.ribbons[0].contains(hash) && f.ribbons[1].contains(hash)
	case staticFuse:
		return f.fuse.contains(hash)
	default:
		panic("petal: query of a closed filter")
	}
}

// Verify reads the whole file and returns an error if any byte of it is damaged.
func (f *Filter) Verify() error {
	if f.layout == closed {
		return os.ErrClosed
	}
	h := f.header
	end := uint64(headerBytes + len(h.metadata))
	data := f.file[h.dataAt:]
	var c checks
	c.zeros("padding", f.file[end:h.dataAt], end)
	if c.sum("data checksum", h.dataAt, checksum(data), h.dataSum); c.err != nil {
		return c.err
	}
	switch h.layout {
	case staticRibbon, cascade:
		for _, r := range f.ribbons {
			r.verify(&c)
		}
	case staticFuse:
		f.fuse.verify(&c, h.dataAt)
	default:
		f.bits.verify(&c, data, h.dataAt)
	}
	return c.err
}

// Type returns the type of the filter: bloom, classic, counting, counting-classic, static, static-fuse or cascade.
func (f *Filter) Type() string { return typeNames[f.header.layout] }

// Len returns how many inserted keys were new, by the filter's header; of a cascade the members.
func (f *Filter) Len() uint64 { return f.header.inserted }

// Metadata returns the text that the file carries besides the filter: usually a JSON object, or nothing.
func (f *Filter) Metadata() string { return f.header.metadata }

// Close frees the memory of a mapped file. No query may run at the same time, and a later one panics.
func (f *Filter) Close() error {
	unmap := f.unmap
	f.layout, f.file, f.unmap = closed, nil, nil
	f.bits, f.ribbons, f.fuse = bitArray{}, nil, nil
	if unmap == nil {
		return nil
	}
	return unmap()
}

package petal

import (
	"math"
	"math/bits"
)

// ribbon is the data of layout 8. Its directory is copied, so that queries stay within the data whatever becomes of
// a mapped file.
type ribbon struct {
	layers     []layer
	columns    uint64
	cuts, rows []byte
	// cutsAt is an offset in the file; cutsEnd and rowsEnd are half words of their part.
	cutsAt, cutsEnd, rowsEnd uint64
}

// layer is a line of the directory; offsets are in half words.
type layer struct {
	mix, shards, segments, wide uint64
	// cutsInShard is 0 in the last layer.
	cutsInShard, cutsAt, rowsAt uint64
}

// field is a number of a file and its offset.
type field struct{ value, at uint64 }

// loadRibbon checks the directory and the lengths of the parts. dataAt is where the data begin in the file.
func loadRibbon(extent, columns, layers field, data []byte, dataAt uint64) (*ribbon, error) {
	var c checks
	c.that(columns.value <= 31, "columns", columns.at, "0 to 31", columns.value)
	exist := layers.value <= 16 && layers.value*lineBytes <= uint64(len(data))
	if c.that(exist, "layers", layers.at, "at most 16, within the data", layers.value); c.err != nil {
		return nil, c.err
	}
	r := &ribbon{columns: columns.value, layers: make([]layer, layers.value), cutsAt: dataAt + layers.value*lineBytes}
	for i := range r.layers {
		line, at := data[i*lineBytes:(i+1)*lineBytes], dataAt+uint64(i)*lineBytes
		l := layer{
			mix: (word(line, 0) + 1) * mixB, shards: word(line, 8), segments: word(line, 16), wide: word(line, 24),
			cutsAt: r.cutsEnd, rowsAt: r.rowsEnd,
		}
		c.that(2 <= l.segments && l.segments <= 1<<20, "segments of a shard", at+16, "2 to 2^20", l.segments)
		high, segments := bits.Mul64(l.shards, l.segments)
		c.that(high == 0 && 1 <= segments && segments <= 1<<50, "shards", at+8, "1 to 2^50 / segments", l.shards)
		c.that(l.wide <= segments, "wide segments", at+24, "at most all", l.wide)
		c.zeros("directory", line[32:], at+32)
		if i < len(r.layers)-1 {
			l.cutsInShard = linesOf(linesOf(32*(l.segments-1), 64), 16)
		}
		r.cutsEnd += l.shards * l.cutsInShard
		r.rowsEnd = l.segmentAt(segments, r.columns)
		r.layers[i] = l
	}
	rowsAt := layers.value + linesOf(r.cutsEnd, 16)
	c.that(extent.value == r.rowsEnd, "extent", extent.at, r.rowsEnd, extent.value)
	if c.lines(data, rowsAt+linesOf(r.rowsEnd, 16)); c.err != nil {
		return nil, c.err
	}
	r.cuts, r.rows = data[layers.value*lineBytes:rowsAt*lineBytes], data[rowsAt*lineBytes:]
	return r, nil
}

// segmentAt returns the half word of the rows at which a segment of the layer begins.
func (l *layer) segmentAt(segment, columns uint64) uint64 {
	wide := segment
	if wide > l.wide {
		wide = l.wide
	}
	return l.rowsAt + segment*columns + wide
}

func (r *ribbon) contains(g uint64) bool {
	for i := range r.layers {
		l := &r.layers[i]
		g ^= l.mix
		g = (g ^ g>>32) * mixA
		g = (g ^ g>>29) * mixB
		g ^= g >> 32
		shard, rest := bits.Mul64(g, l.shards)
		start, _ := bits.Mul64(rest, 32*(l.segments-1))
		if l.cutsInShard != 0 {
			bucket := start / 64
			at := l.cutsAt + shard*l.cutsInShard + bucket/16
			cut := half(r.cuts, 4*at) >> (bucket % 16 * 2) & 3
			// 0, 8, 20 or 64 rows of the bucket are bumped.
			if start%64 < uint64(0x40140800>>(8*cut)&0xff) {
				continue
			}
		}
		return r.compare(l, shard*l.segments+start/32, start%32, fold(g, mixA))
	}
	return false
}

// compare returns whether the sums of the rows from one of a segment on are the fingerprint of e.
func (r *ribbon) compare(l *layer, segment, row, e uint64) bool {
	columns := r.columns
	if segment+1 < l.wide {
		columns++
	}
	equation := uint64(uint32(e)|1) << row
	fingerprint := e >> 32
	first := r.rows[4*l.segmentAt(segment, r.columns):]
	second := r.rows[4*l.segmentAt(segment+1, r.columns):]
	for j := uint64(0); j < columns; j++ {
		rows := uint64(half(first, 4*j)) | uint64(half(second, 4*j))<<32
		if (uint64(bits.OnesCount64(rows&equation))^fingerprint>>j)&1 != 0 {
			return false
		}
	}
	return true
}

// verify checks the half words after the last ones.
func (r *ribbon) verify(c *checks) {
	c.zeros("bits after the last cut", r.cuts[4*r.cutsEnd:], r.cutsAt+4*r.cutsEnd)
	c.zeros("bits after the last row", r.rows[4*r.rowsEnd:], r.cutsAt+uint64(len(r.cuts))+4*r.rowsEnd)
}

// loadCascade checks layout 9 and returns its two filters.
func loadCascade(h *header, data []byte) ([]*ribbon, error) {
	var c checks
	c.noProbes(h, 1)
	c.that(h.extent == 2, "filters of a cascade", extentAt, 2, h.extent)
	c.that(h.capacity == h.inserted, "capacity", 72, h.inserted, h.capacity)
	if len(data) < lineBytes {
		c.lines(data, 1)
		return nil, c.err
	}
	number := func(i uint64) field { return field{word(data, 8*i), h.dataAt + 8*i} }
	lines, keys, rest := number(0), number(7), data[lineBytes:]
	rate := math.Float64frombits(word(data, 16))
	c.that(lines.value <= uint64(len(rest))/lineBytes, "lines of a filter", lines.at, "at most all", lines.value)
	c.that(rate > 0 && rate < 1, "rate of the first filter", h.dataAt+16, "0 to 1", rate)
	valid := h.inserted <= keys.value && keys.value <= maxInserted
	if c.that(valid, "keys of the second filter", keys.at, "at least the members", keys.value); c.err != nil {
		return nil, c.err
	}
	end, at := lines.value*lineBytes, h.dataAt+lineBytes
	first, err := loadRibbon(number(1), number(3), number(4), rest[:end], at)
	if err != nil {
		return nil, err
	}
	second, err := loadRibbon(number(5), field{value: 1}, number(6), rest[end:], at+end)
	return []*ribbon{first, second}, err
}

// fuse is the data of layout 12.
type fuse struct {
	data                                 []byte
	shards, segments, wide, slots, width uint64
	logSegment                           uint64
	mixer, multipliersAt                 uint64
}

func loadFuse(h *header, data []byte) (*fuse, error) {
	p := h.parameters
	f := &fuse{data: data, width: p[0], logSegment: p[1], shards: p[2], segments: p[3], wide: p[4], mixer: mixB + 2*p[5]*mixA}
	var c checks
	c.noProbes(h, 6)
	c.parameter(f.width <= 31, h, 0, "0 to 31")
	c.parameter(f.logSegment <= 16, h, 1, "0 to 16")
	c.parameter(4 <= f.segments && f.segments <= 1<<31>>f.logSegment, h, 3, "4, up to 2^31 slots")
	high, slots := bits.Mul64(f.shards, f.segments<<f.logSegment)
	valid := high == 0 && slots <= 1<<50 && f.shards&(f.shards-1) == 0
	c.parameter(valid, h, 2, "a power of two or 0, and at most 2^50 slots")
	c.parameter(f.wide <= f.shards*f.segments, h, 4, "at most all segments")
	c.parameter(p[5] <= 65535, h, 5, "0 to 65535")
	c.that(h.extent == slots, "extent", extentAt, slots, h.extent)
	f.slots = slots
	f.multipliersAt = linesOf(f.bitOf(f.slots), 64) * 8
	c.lines(data, linesOf(f.multipliersAt+8*f.shards, lineBytes))
	return f, c.err
}

// bitOf returns the first bit of a slot.
func (f *fuse) bitOf(slot uint64) uint64 {
	wide := f.wide << f.logSegment
	if wide > slot {
		wide = slot
	}
	return slot*f.width + wide
}

func (f *fuse) contains(hash uint64) bool {
	if f.shards == 0 {
		return false
	}
	g := fold(hash, f.mixer)
	shard, rest := bits.Mul64(g, f.shards)
	start := rest >> 32 * ((f.segments - 3) << f.logSegment) >> 32
	e := g * word(f.data, f.multipliersAt+8*shard)
	segment := shard*f.segments + start>>f.logSegment
	sum := g ^ e>>32 ^ f.slot(shard*f.segments<<f.logSegment+start)
	for i := uint64(1); i < 4; i++ {
		sum ^= f.slot((segment+i)<<f.logSegment + e>>(16*i)&(1<<f.logSegment-1))
	}
	width := f.width
	if segment+3 < f.wide {
		width++
	}
	return sum&(1<<width-1) == 0
}

// slot returns the bits of a slot, and more above them. A multiplier follows the slots, so there are 8 bytes to read.
func (f *fuse) slot(slot uint64) uint64 {
	bit := f.bitOf(slot)
	return word(f.data, bit>>3) >> (bit & 7)
}

// verify checks the bits after the last slot and the last multiplier.
func (f *fuse) verify(c *checks, dataAt uint64) {
	if used := f.bitOf(f.slots) % 64; used != 0 {
		last := f.multipliersAt - 8
		c.that(word(f.data, last)>>used == 0, "bits after the last slot", dataAt+last, 0, "a set bit")
	}
	end := f.multipliersAt + 8*f.shards
	c.zeros("bits after the last multiplier", f.data[end:], dataAt+end)
}

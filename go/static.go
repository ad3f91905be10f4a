package petal

import (
	"math"
	"math/bits"
)

// ribbon is the data of layout 8. Its directory is copied, so that queries stay within the data whatever becomes of
// a mapped file.
type ribbon struct {
	layers        []layer
	columns       uint64
	cuts, rows    []byte
	cutsEnd       uint64
	rowsEnd       uint64
	directoryEnds uint64
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
	if columns.value > 31 {
		return nil, damaged("columns", columns.at, "0 to 31", columns.value)
	}
	if layers.value > 16 || layers.value*lineBytes > uint64(len(data)) {
		return nil, damaged("layers", layers.at, "at most 16, within the data", layers.value)
	}
	r := &ribbon{
		columns: columns.value, layers: make([]layer, layers.value), directoryEnds: layers.value * lineBytes,
	}
	for i := range r.layers {
		at := uint64(i) * lineBytes
		l := layer{
			mix: (word(data, at) + 1) * mixB, shards: word(data, at+8), segments: word(data, at+16), wide: word(data, at+24),
			cutsAt: r.cutsEnd, rowsAt: r.rowsEnd,
		}
		if l.segments < 2 || l.segments > 1<<20 {
			return nil, damaged("segments of a shard", dataAt+at+16, "2 to 2^20", l.segments)
		}
		if l.shards < 1 || l.shards > 1<<50/l.segments {
			return nil, damaged("shards", dataAt+at+8, "1 to 2^50 / segments", l.shards)
		}
		if l.wide > l.shards*l.segments {
			return nil, damaged("wide segments", dataAt+at+24, "at most all", l.wide)
		}
		if err := checkZeros("directory", data[at+32:at+64], dataAt+at+32); err != nil {
			return nil, err
		}
		if i < len(r.layers)-1 {
			l.cutsInShard = linesOf(linesOf(32*(l.segments-1), 64), 16)
		}
		r.cutsEnd += l.shards * l.cutsInShard
		r.rowsEnd = l.segmentAt(l.shards*l.segments, r.columns)
		r.layers[i] = l
	}
	if extent.value != r.rowsEnd {
		return nil, damaged("extent", extent.at, r.rowsEnd, extent.value)
	}
	rowsAt := layers.value + linesOf(r.cutsEnd, 16)
	if err := checkLines(data, rowsAt+linesOf(r.rowsEnd, 16)); err != nil {
		return nil, err
	}
	r.cuts, r.rows = data[r.directoryEnds:rowsAt*lineBytes], data[rowsAt*lineBytes:]
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
func (r *ribbon) verify(dataAt uint64) error {
	at := dataAt + r.directoryEnds
	if err := checkZeros("bits after the last cut", r.cuts[4*r.cutsEnd:], at+4*r.cutsEnd); err != nil {
		return err
	}
	at += uint64(len(r.cuts))
	return checkZeros("bits after the last row", r.rows[4*r.rowsEnd:], at+4*r.rowsEnd)
}

// loadCascade checks layout 9 and returns its two filters, and where they begin in the file.
func loadCascade(h *header, data []byte) (filters [2]*ribbon, at [2]uint64, err error) {
	if h.extent != 2 {
		return filters, at, damaged("filters of a cascade", extentAt, 2, h.extent)
	}
	if h.capacity != h.inserted {
		return filters, at, damaged("capacity", 72, h.inserted, h.capacity)
	}
	if len(data) < lineBytes {
		return filters, at, checkLines(data, 1)
	}
	number := func(i uint64) field { return field{word(data, 8*i), h.dataAt + 8*i} }
	lines, rate, keys, rest := number(0), number(2), number(7), data[lineBytes:]
	if lines.value > uint64(len(rest))/lineBytes {
		return filters, at, damaged("lines of the first filter", lines.at, "at most those of the file", lines.value)
	}
	if rate := math.Float64frombits(rate.value); !(rate > 0 && rate < 1) {
		return filters, at, damaged("rate of the first filter", h.dataAt+16, "0 to 1", rate)
	}
	if keys.value < h.inserted || keys.value > maxInserted {
		return filters, at, damaged("keys of the second filter", keys.at, "at least the members", keys.value)
	}
	first := lines.value * lineBytes
	at = [2]uint64{h.dataAt + lineBytes, h.dataAt + lineBytes + first}
	if filters[0], err = loadRibbon(number(1), number(3), number(4), rest[:first], at[0]); err == nil {
		filters[1], err = loadRibbon(number(5), field{1, 0}, number(6), rest[first:], at[1])
	}
	return filters, at, err
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
	if p[0] > 31 {
		return nil, h.badParameter(0, "0 to 31")
	}
	if p[1] > 16 {
		return nil, h.badParameter(1, "0 to 16")
	}
	if f.segments < 4 || f.segments > 1<<31>>f.logSegment {
		return nil, h.badParameter(3, "4, up to 2^31 slots")
	}
	if f.shards > 1<<50/(f.segments<<f.logSegment) || f.shards&(f.shards-1) != 0 {
		return nil, h.badParameter(2, "a power of two or 0, and at most 2^50 slots")
	}
	if f.wide > f.shards*f.segments {
		return nil, h.badParameter(4, "at most all segments")
	}
	if p[5] > 65535 {
		return nil, h.badParameter(5, "0 to 65535")
	}
	if f.slots = f.shards * f.segments << f.logSegment; h.extent != f.slots {
		return nil, damaged("extent", extentAt, f.slots, h.extent)
	}
	f.multipliersAt = linesOf(f.bitOf(f.slots), 64) * 8
	return f, checkLines(data, linesOf(f.multipliersAt+8*f.shards, lineBytes))
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
func (f *fuse) verify(dataAt uint64) error {
	if used := f.bitOf(f.slots) % 64; used != 0 && word(f.data, f.multipliersAt-8)>>used != 0 {
		return damaged("bits after the last slot", dataAt+f.multipliersAt-8, 0, "a set bit")
	}
	end := f.multipliersAt + 8*f.shards
	return checkZeros("bits after the last multiplier", f.data[end:], dataAt+end)
}

package petal

import (
	"fmt"
	"math/bits"
)

// bitArray is the data of a Bloom filter; of a counting one, the bits whose counters are above zero.
type bitArray struct {
	data   []byte
	extent uint64
	probes uint64
	lanes  uint64
}

// loadBits checks layouts 1 to 4.
func loadBits(h *header, data []byte) (bitArray, error) {
	b := bitArray{extent: h.extent, probes: uint64(h.probes), lanes: uint64(h.lanes)}
	var c checks
	lines, maxProbes := linesOf(b.extent, 512), uint64(64)
	if h.layout == bloom || h.layout == counting {
		lines, maxProbes = b.extent*b.lanes/8, b.lanes
		c.that(b.lanes == 8 || b.lanes == 16, "lanes", 40, "8 or 16", b.lanes)
		c.that(b.extent <= 1<<50, "blocks", extentAt, "1 to 2^50", b.extent)
	} else {
		c.that(b.lanes == 0, "lanes", 40, 0, b.lanes)
		c.that(b.extent <= 1<<59, "bits", extentAt, "1 to 2^59", b.extent)
	}
	c.that(b.extent >= 1, "extent", extentAt, "at least 1", b.extent)
	c.that(1 <= b.probes && b.probes <= maxProbes, "probes", 38, fmt.Sprintf("1 to %d", maxProbes), b.probes)
	used, width := 0, uint64(1)
	if h.layout == counting || h.layout == countingClassic {
		used, width = 1, h.parameters[0]
		c.parameter(2 <= width && width <= 8, h, 0, "2 to 8")
	}
	c.unused(h, used)
	c.lines(data, lines*width)
	if c.err == nil {
		b.data = data[:lines*lineBytes]
	}
	return b, c.err
}

func (b *bitArray) containsBlocked(hash uint64) bool {
	block, _ := bits.Mul64(hash, b.extent)
	low, high := hash*mixA, hash*mixB
	bytes := b.lanes * 8
	line := b.data[block*bytes : block*bytes+bytes]
	for i, start := uint64(0), low>>12; i < b.probes; i++ {
		lane := (start + i) & (b.lanes - 1)
		g := low
		if lane >= 8 {
			g = high
		}
		if word(line, 8*lane)>>(g>>(16+6*(lane&7))&63)&1 == 0 {
			return false
		}
	}
	return true
}

func (b *bitArray) containsClassic(x uint64) bool {
	for i := uint64(0); i < b.probes; i++ {
		p, _ := bits.Mul64(x, b.extent)
		if b.data[p>>3]>>(p&7)&1 == 0 {
			return false
		}
		x *= 0xf1357aea2e62a9c5
	}
	return true
}

// verify checks the bits after the last one of a classic filter, and the planes of a counting one.
func (b *bitArray) verify(c *checks, data []byte, dataAt uint64) {
	if b.lanes == 0 {
		last := (b.extent - 1) / 8
		c.that(b.data[last]>>((b.extent-1)%8)>>1 == 0, "bits after the last one", dataAt+last, 0, "a set bit")
		c.zeros("bits after the last one", b.data[last+1:], dataAt+last+1)
	}
	planes := data[len(b.data):]
	depth := uint64(len(planes) / len(b.data))
	for at := uint64(0); at < uint64(len(planes)) && c.err == nil; at += 8 {
		if word(planes, at)&^word(b.data, at/lineBytes/depth*lineBytes+at%lineBytes) != 0 {
			c.that(false, "counters of clear bits", dataAt+uint64(len(b.data))+at, 0, "a count")
		}
	}
}

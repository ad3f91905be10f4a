package petal

import "math/bits"

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
	blocked, lines := h.layout == bloom || h.layout == counting, uint64(0)
	if blocked {
		if b.lanes != 8 && b.lanes != 16 {
			return b, damaged("lanes", 40, "8 or 16", b.lanes)
		}
		if b.probes < 1 || b.probes > b.lanes {
			return b, damaged("probes", 38, "1 to lanes", b.probes)
		}
		if b.extent < 1 || b.extent > 1<<50 {
			return b, damaged("blocks", extentAt, "1 to 2^50", b.extent)
		}
		lines = b.extent * b.lanes / 8
	} else {
		if b.lanes != 0 {
			return b, damaged("lanes", 40, 0, b.lanes)
		}
		if b.probes < 1 || b.probes > 64 {
			return b, damaged("probes", 38, "1 to 64", b.probes)
		}
		if b.extent < 1 || b.extent > 1<<59 {
			return b, damaged("bits", extentAt, "1 to 2^59", b.extent)
		}
		lines = linesOf(b.extent, 512)
	}
	used, width := 0, uint64(1)
	if h.layout == counting || h.layout == countingClassic {
		used, width = 1, h.parameters[0]
		if width < 2 || width > 8 {
			return b, h.badParameter(0, "2 to 8")
		}
	}
	if err := h.checkParameters(used); err != nil {
		return b, err
	}
	if err := checkLines(data, lines*width); err != nil {
		return b, err
	}
	b.data = data[:lines*lineBytes]
	return b, nil
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
func (b *bitArray) verify(data []byte, dataAt uint64) error {
	if b.lanes == 0 {
		last := (b.extent - 1) / 8
		if b.data[last]>>((b.extent-1)%8)>>1 != 0 {
			return damaged("bits after the last one", dataAt+last, 0, "a set bit")
		}
		if err := checkZeros("bits after the last one", b.data[last+1:], dataAt+last+1); err != nil {
			return err
		}
	}
	planes := data[len(b.data):]
	depth := uint64(len(planes) / len(b.data))
	for at := uint64(0); at < uint64(len(planes)); at += 8 {
		line := at / lineBytes / depth
		if word(planes, at)&^word(b.data, line*lineBytes+at%lineBytes) != 0 {
			return damaged("counters of clear bits", dataAt+uint64(len(b.data))+at, 0, "a count")
		}
	}
	return nil
}

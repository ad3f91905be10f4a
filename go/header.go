package petal

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"
)

const (
	magic       = "\x89PETAL\r\n"
	headerBytes = 256
	page        = 4096
	lineBytes   = 64
	maxInserted = math.MaxInt64

	layoutAt    = 10
	extentAt    = 64
	insertedAt  = 88
	parameterAt = 96
)

// The layouts of files, by their number in the header.
const (
	closed          = 0
	bloom           = 1
	classic         = 2
	counting        = 3
	countingClassic = 4
	staticRibbon    = 8
	cascade         = 9
	staticFuse      = 12
)

// The names of the layouts; empty for those that no version of the format has.
var typeNames = [...]string{
	1: "bloom", "classic", "counting", "counting-classic", "quotient", "scalable", "windowed", "static", "cascade",
	11: "vector-quotient", "static-fuse",
}

// header has the fields of a file that passed all checks that do not need its data.
type header struct {
	layout, algorithm, probes, lanes uint16
	seed                             [2]uint64
	extent, capacity, inserted       uint64
	parameters                       [18]uint64
	dataAt, dataSum                  uint64
	metadata                         string
}

func word(data []byte, at uint64) uint64 { return binary.LittleEndian.Uint64(data[at:]) }

func half(data []byte, at uint64) uint32 { return binary.LittleEndian.Uint32(data[at:]) }

// linesOf returns the number of lines that n units fill.
func linesOf(n, unitsInLine uint64) uint64 { return (n + unitsInLine - 1) / unitsInLine }

// parseHeader checks the header, the length of the file and the metadata.
func parseHeader(file []byte) (*header, error) {
	start := file
	if len(file) > len(magic) {
		start = file[:len(magic)]
	}
	if len(start) == 0 || string(start) != magic[:len(start)] {
		return nil, foreign(start)
	}
	if len(file) < headerBytes {
		return nil, wrongLength(headerBytes, len(file))
	}
	short := func(at int) uint16 { return binary.LittleEndian.Uint16(file[at:]) }
	if version := short(8); version != 1 {
		return nil, unknown("version", 8, version)
	}
	h := &header{
		layout: short(layoutAt), algorithm: short(36), probes: short(38), lanes: short(40),
		seed:   [2]uint64{word(file, 48), word(file, 56)},
		extent: word(file, extentAt), capacity: word(file, 72), inserted: word(file, insertedAt),
		dataAt: word(file, 16), dataSum: word(file, 240),
	}
	for i := range h.parameters {
		h.parameters[i] = word(file, parameterAt+8*uint64(i))
	}
	if int(h.layout) >= len(typeNames) || typeNames[h.layout] == "" {
		return nil, unknown("layout", layoutAt, h.layout)
	}
	var c checks
	c.zeros("flags", file[12:16], 12)
	c.zeros("reserved", file[42:48], 42)
	known := h.algorithm == rapid || h.algorithm == sip13 || h.algorithm == rapidKeyed || h.algorithm == secretApart
	c.that(known, "hash", 36, "1, 2, 5 or 6", h.algorithm)
	c.that(h.algorithm == sip13 || h.algorithm == rapidKeyed || h.seed[1] == 0, "seed", 56, 0, h.seed[1])
	metadataLength, dataLength := uint64(half(file, 32)), word(file, 24)
	c.that(metadataLength <= 1<<20, "metadata length", 32, "at most 2^20", metadataLength)
	dataAt := linesOf(headerBytes+metadataLength, page) * page
	c.that(h.dataAt == dataAt, "data offset", 16, dataAt, h.dataAt)
	c.that(h.inserted <= maxInserted, "keys inserted", insertedAt, "at most 2^63 - 1", h.inserted)
	rate := math.Float64frombits(word(file, 80))
	c.that(rate >= 0 && rate < 1 && !math.Signbit(rate), "target rate", 80, "0 to 1", rate)
	if c.err != nil {
		return nil, c.err
	}
	if dataLength > math.MaxInt64 || uint64(len(file)) != dataAt+dataLength {
		return nil, wrongLength(dataAt+dataLength, len(file))
	}
	metadata := file[headerBytes : headerBytes+metadataLength]
	summed := append(append(make([]byte, 0, 248+len(metadata)), file[:248]...), metadata...)
	c.sum("header checksum", 248, checksum(summed), word(file, 248))
	c.that(utf8.Valid(metadata), "metadata", headerBytes, "UTF-8", "other bytes")
	h.metadata = string(metadata)
	return h, c.err
}

// parameter is the check of a parameter.
func (c *checks) parameter(valid bool, h *header, i int, expected any) {
	c.that(valid, fmt.Sprintf("parameter %d", i), parameterAt+8*uint64(i), expected, h.parameters[i])
}

// unused checks that parameters from a number on are 0.
func (c *checks) unused(h *header, from int) {
	for i := from; i < len(h.parameters); i++ {
		c.parameter(h.parameters[i] == 0, h, i, 0)
	}
}

// noProbes checks that probes and lanes are 0, and parameters from a number on.
func (c *checks) noProbes(h *header, from int) {
	c.that(h.probes == 0, "probes", 38, 0, h.probes)
	c.that(h.lanes == 0, "lanes", 40, 0, h.lanes)
	c.unused(h, from)
}

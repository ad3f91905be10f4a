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
	maxMetadata = 1 << 20
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
	if len(file) < headerBytes {
		start := len(file)
		if start > len(magic) {
			start = len(magic)
		}
		if start == 0 || string(file[:start]) != magic[:start] {
			return nil, foreign(file)
		}
		return nil, wrongLength(headerBytes, len(file))
	}
	short := func(at int) uint16 { return binary.LittleEndian.Uint16(file[at:]) }
	if string(file[:len(magic)]) != magic {
		return nil, foreign(file)
	}
	if version := short(8); version != 1 {
		return nil, newer("version", 8, version)
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
		return nil, newer("layout", layoutAt, h.layout)
	}
	if err := checkZeros("flags", file[12:16], 12); err != nil {
		return nil, err
	}
	if err := checkZeros("reserved", file[42:48], 42); err != nil {
		return nil, err
	}
	switch h.algorithm {
	case rapid, sip13, rapidKeyed, secretApart:
	default:
		return nil, damaged("hash", 36, "1, 2, 5 or 6", h.algorithm)
	}
	if (h.algorithm == rapid || h.algorithm == secretApart) && h.seed[1] != 0 {
		return nil, damaged("seed", 56, 0, h.seed[1])
	}
	metadataLength, dataLength := uint64(half(file, 32)), word(file, 24)
	if metadataLength > maxMetadata {
		return nil, damaged("metadata length", 32, "at most 1048576", metadataLength)
	}
	if at := linesOf(headerBytes+metadataLength, page) * page; h.dataAt != at {
		return nil, damaged("data offset", 16, at, h.dataAt)
	}
	if h.inserted > maxInserted {
		return nil, damaged("keys inserted", insertedAt, "at most 2^63 - 1", h.inserted)
	}
	rate := math.Float64frombits(word(file, 80))
	if !(rate >= 0 && rate < 1) || math.Signbit(rate) {
		return nil, damaged("target rate", 80, "0 to 1", rate)
	}
	if dataLength > math.MaxInt64 || uint64(len(file)) != h.dataAt+dataLength {
		return nil, wrongLength(h.dataAt+dataLength, len(file))
	}
	metadata := file[headerBytes : headerBytes+metadataLength]
	summed := append(append(make([]byte, 0, 248+len(metadata)), file[:248]...), metadata...)
	if sum := checksum(summed); sum != word(file, 248) {
		return nil, wrongSum("header checksum", 248, sum, word(file, 248))
	}
	if !utf8.Valid(metadata) {
		return nil, damaged("metadata", headerBytes, "UTF-8", "other bytes")
	}
	h.metadata = string(metadata)
	return h, nil
}

// checkParameters refuses parameters other than 0 after those that the layout uses.
func (h *header) checkParameters(used int) error {
	for i := used; i < len(h.parameters); i++ {
		if h.parameters[i] != 0 {
			return h.badParameter(i, 0)
		}
	}
	return nil
}

func (h *header) badParameter(i int, expected any) error {
	return damaged(fmt.Sprintf("parameter %d", i), parameterAt+8*uint64(i), expected, h.parameters[i])
}

// check refuses probes, lanes, and parameters from a number on, of a layout without them.
func (h *header) check(parameters int) error {
	if h.probes != 0 || h.lanes != 0 {
		return damaged("probes and lanes", 38, 0, fmt.Sprintf("%d and %d", h.probes, h.lanes))
	}
	return h.checkParameters(parameters)
}

// checkLines compares the length of the data with the lines that the layout needs.
func checkLines(data []byte, lines uint64) error {
	if uint64(len(data))/lineBytes != lines || len(data)%lineBytes != 0 {
		return damaged("data length", 24, fmt.Sprintf("%d lines of 64 bytes", lines), fmt.Sprintf("%d bytes", len(data)))
	}
	return nil
}

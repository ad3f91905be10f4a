package petal

import (
	"bytes"
	"fmt"
)

// Kind is the kind of an [Error]; it is an error itself, for [errors.Is].
type Kind string

// The kinds of errors.
const (
	// ErrForeign: the bytes are not a petal file.
	ErrForeign Kind = "not a petal file"
	// ErrUnsupported: the file has a version of the format or a type of filter that this package does not read.
	ErrUnsupported Kind = "unsupported"
	// ErrDamaged: the file was changed, cut or extended.
	ErrDamaged Kind = "damaged"
	// ErrSecret: the filter needs a secret that is not in its file, and none or another one was given.
	ErrSecret Kind = "secret"
)

func (k Kind) Error() string { return string(k) }

// Error is the error of a file that cannot be queried. Its text is one line: where, what, and what to do.
type Error struct {
	// Kind is what errors.Is compares.
	Kind Kind
	// Path is the name of the file; empty for bytes.
	Path string
	// Type is the type of the filter, where the error is about a type.
	Type string
	// Offset is the byte of the file that is wrong; -1 if the error is about no byte.
	Offset int64

	text string
}

func (e *Error) Error() string {
	text := string(e.Kind) + ": " + e.text
	if e.Path != "" {
		return e.Path + ": " + text
	}
	return text
}

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }

func foreign(start []byte) error {
	text := fmt.Sprintf("expected it to begin with % x, found % x; give a file that petal wrote", magic, start)
	return &Error{Kind: ErrForeign, text: text}
}

func unknown(what string, at int64, number uint16) error {
	text := fmt.Sprintf("%s %d at byte %d is unknown; use a later version of this package", what, number, at)
	return &Error{Kind: ErrUnsupported, Offset: at, text: text}
}

func unsupported(name string) error {
	advice := "query it with the petal program or its packages for Rust and Python, or build a bloom or static filter"
	return &Error{Kind: ErrUnsupported, Type: name, Offset: layoutAt, text: "a " + name + " filter; " + advice}
}

func damaged(field string, at uint64, expected, found any) error {
	text := fmt.Sprintf("%s at byte %d: expected %v, found %v; fetch or build the file again", field, at, expected, found)
	return &Error{Kind: ErrDamaged, Offset: int64(at), text: text}
}

func wrongLength(expected uint64, found int) error {
	text := fmt.Sprintf("%d bytes expected, %d found; fetch or build the file again", expected, found)
	return &Error{Kind: ErrDamaged, Offset: -1, text: text}
}

func secretError(problem string) error {
	return &Error{Kind: ErrSecret, Offset: -1, text: problem + "; give WithSecret the one the filter was built with"}
}

// checks has the first field that is wrong.
type checks struct{ err error }

func (c *checks) that(valid bool, field string, at uint64, expected, found any) {
	if !valid && c.err == nil {
		c.err = damaged(field, at, expected, found)
	}
}

// zeros refuses bytes other than zero; at is the offset of the first one in the file.
func (c *checks) zeros(field string, part []byte, at uint64) {
	if i := bytes.IndexFunc(part, func(r rune) bool { return r != 0 }); i >= 0 {
		c.that(false, field, at+uint64(i), 0, part[i])
	}
}

// lines compares the length of the data with the lines that the layout needs.
func (c *checks) lines(data []byte, lines uint64) {
	valid := uint64(len(data))/lineBytes == lines && len(data)%lineBytes == 0
	c.that(valid, "data length", 24, fmt.Sprintf("%d lines of 64 bytes", lines), fmt.Sprintf("%d bytes", len(data)))
}

func (c *checks) sum(field string, at, expected, found uint64) {
	c.that(expected == found, field, at, fmt.Sprintf("%016x", expected), fmt.Sprintf("%016x", found))
}

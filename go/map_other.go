//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package petal

// mapFile maps nothing: the file is read.
func mapFile(string) ([]byte, func() error, error) { return nil, nil, errNoMapping }

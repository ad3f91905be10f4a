//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package petal

import "os"

// mapFile reads a file instead.
func mapFile(path string) ([]byte, func() error, error) {
	data, err := os.ReadFile(path)
	return data, func() error { return nil }, err
}

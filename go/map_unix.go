//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package petal

import (
	"os"
	"syscall"
)

// mapFile maps a file for reading; the function frees it.
func mapFile(path string) ([]byte, func() error, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	size := int(info.Size())
	if size == 0 {
		return nil, func() error { return nil }, nil
	}
	var data []byte
	if err = syscall.EFBIG; int64(size) == info.Size() {
		data, err = syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_SHARED)
	}
	if err != nil {
		return nil, nil, &os.PathError{Op: "map", Path: path, Err: err}
	}
	return data, func() error { return syscall.Munmap(data) }, nil
}

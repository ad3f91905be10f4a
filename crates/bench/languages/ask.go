// Times a filter in Go: ask TYPE FOLDER. The type is that of a file of petal, or `rival`.
package main

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sort"
	"syscall"

	petal "example.com/petal/go"
	"github.com/bits-and-blooms/bloom"
)

func keys(folder, name string) [][]byte {
	text, err := os.ReadFile(filepath.Join(folder, name+".txt"))
	if err != nil {
		log.Fatal(err)
	}
	return bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
}

func cpuNs() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}

// measure calls a function that returns how many keys a filter contains.
func measure(name string, count int, ask func() int) {
	found := ask()
	times := make([]float64, 5)
	for round := range times {
		start := cpuNs()
		found = ask()
		times[round] = float64(cpuNs()-start) / float64(count)
	}
	sort.Float64s(times)
	fmt.Printf("%s %.3f %d\n", name, times[len(times)/2], found)
}

func main() {
	kind, folder := os.Args[1], os.Args[2]
	present, absent := keys(folder, "present"), keys(folder, "absent")
	var ask func(asked [][]byte) int
	if kind == "rival" {
		filter := bloom.NewWithEstimates(uint(len(present)), 0.01)
		for _, key := range present {
			filter.Add(key)
		}
		ask = func(asked [][]byte) (found int) {
			for _, key := range asked {
				if filter.Test(key) {
					found++
				}
			}
			return found
		}
	} else {
		filter, err := petal.Open(filepath.Join(folder, kind+".petal"))
		if err != nil {
			log.Fatal(err)
		}
		ask = func(asked [][]byte) (found int) {
			for _, key := range asked {
				if filter.ContainsBytes(key) {
					found++
				}
			}
			return found
		}
	}
	measure("present", len(present), func() int { return ask(present) })
	measure("absent", len(absent), func() int { return ask(absent) })
}

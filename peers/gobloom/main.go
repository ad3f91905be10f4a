// The Go library bits-and-blooms/bloom: writes a filter of lines and queries one.
// Variants: plain (WriteTo and ReadFrom), little (the same, with a little-endian bitset), json (MarshalJSON).
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"github.com/bits-and-blooms/bitset"
	"github.com/bits-and-blooms/bloom"
)

func main() {
	defer func() {
		// The library panics for some invalid files.
		if problem := recover(); problem != nil {
			fmt.Fprintln(os.Stderr, "gobloom:", problem)
			os.Exit(1)
		}
	}()
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gobloom:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) > 1 {
		switch args[1] {
		case "plain", "json":
		case "little":
			bitset.LittleEndian()
		default:
			return fmt.Errorf("no variant %s: plain, little, json", args[1])
		}
	}
	switch {
	case len(args) == 6 && args[0] == "write":
		return write(args[1], args[2], args[3], args[4], args[5])
	case len(args) == 4 && args[0] == "check":
		return check(args[1], args[2], args[3])
	}
	return fmt.Errorf("version, write or check")
}

func lines(path string) ([][]byte, error) {
	text, err := os.ReadFile(path)
	return bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")), err
}

func write(variant, count, chance, members, out string) error {
	n, err := strconv.ParseUint(count, 10, 0)
	if err != nil {
		return err
	}
	rate, err := strconv.ParseFloat(chance, 64)
	if err != nil {
		return err
	}
	keys, err := lines(members)
	if err != nil {
		return err
	}
	filter := bloom.NewWithEstimates(uint(n), rate)
	for _, key := range keys {
		filter.Add(key)
	}
	var file []byte
	if variant == "json" {
		file, err = json.Marshal(filter)
	} else {
		file, err = filter.GobEncode() // what WriteTo writes
	}
	if err != nil {
		return err
	}
	return os.WriteFile(out, file, 0o644)
}

func check(variant, path, keys string) error {
	asked, err := lines(keys)
	if err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	filter := bloom.New(1, 1)
	if variant == "json" {
		err = json.NewDecoder(file).Decode(filter)
	} else {
		_, err = filter.ReadFrom(file)
	}
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	for _, key := range asked {
		if filter.Test(key) {
			fmt.Fprintln(out, 1)
		} else {
			fmt.Fprintln(out, 0)
		}
	}
	return out.Flush()
}

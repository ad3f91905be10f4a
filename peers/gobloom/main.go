// The Go library bits-and-blooms/bloom: writes a filter of lines and asks one.
// Variants: plain (WriteTo and ReadFrom), little (the same, its bitset told to be little-endian), json (MarshalJSON).
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
		// The library panics at some files it should refuse.
		if trouble := recover(); trouble != nil {
			fmt.Fprintln(os.Stderr, "gobloom:", trouble)
			os.Exit(1)
		}
	}()
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gobloom:", err)
		os.Exit(1)
	}
}

func run(words []string) error {
	if len(words) > 1 {
		switch words[1] {
		case "plain", "json":
		case "little":
			bitset.LittleEndian()
		default:
			return fmt.Errorf("no variant %s: plain, little, json", words[1])
		}
	}
	switch {
	case len(words) == 6 && words[0] == "write":
		return write(words[1], words[2], words[3], words[4], words[5])
	case len(words) == 4 && words[0] == "check":
		return check(words[1], words[2], words[3])
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

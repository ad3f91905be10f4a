package petal_test

import (
	"fmt"

	petal "example.com/petal/go"
)

func ExampleOpen() {
	filter, err := petal.Open("../testdata/conformance/bloom-metadata.petal")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(filter.Contains("one"), filter.Contains("a key that is absent"))
	fmt.Println(filter.Type(), filter.Len(), filter.Metadata())
	// Output:
	// true false
	// bloom 89 {"source":"布隆","note":"x"}
}

func ExampleOpenMapped() {
	filter, err := petal.OpenMapped("../testdata/conformance/static-fuse-shards.petal")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer filter.Close()
	fmt.Println(filter.Type(), filter.ContainsUint64(1_000_000))
	// Output: static-fuse true
}

func ExampleWithSecret() {
	path := "../testdata/conformance/bloom-secret-apart.petal"
	_, err := petal.Open(path)
	fmt.Println(err)

	// Read a real secret from where secrets are kept.
	secret := []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	filter, err := petal.Open(path, petal.WithSecret(secret))
	fmt.Println(filter.Contains("one"), err)
	// Output:
	// ../testdata/conformance/bloom-secret-apart.petal: secret: it is not in the file; give WithSecret the one the filter was built with
	// true <nil>
}

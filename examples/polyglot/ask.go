// Prints the lines of the input that a filter file may contain.
package main

import (
	"bufio"
	"fmt"
	"log"
	"os"

	petal "example.com/petal/go"
)

func main() {
	filter, err := petal.Open(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if filter.ContainsBytes(lines.Bytes()) {
			fmt.Println(lines.Text())
		}
	}
}

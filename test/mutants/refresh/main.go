// Command refresh makes the patches of planted bugs apply again after the product was changed:
//
//	go run ./test/mutants/refresh
//
// It rewrites the context, follows code that was moved to another file, and lists the
// patches that must be mended by hand; for these it exits with 1. Look at the difference before you
// commit it: a patch that was moved must still be the same bug. Run it from the root of the module.
package main

import (
	"fmt"
	"os"

	"regent/test/mutants"
)

func main() {
	if err := mutants.Refresh(".", "test/mutants/patches", func(told string) { fmt.Println(told) }); err != nil {
		fmt.Fprintf(os.Stderr, "to be mended by hand:\n%v\n", err)
		os.Exit(1)
	}
}

// Command hits comes to the point "some:point" five times, and says each time that it got past it.
package main

import (
	"fmt"

	"regent/leadership/instance/internal/failpoint"
)

func main() {
	defer fmt.Println("deferred")
	for i := range 5 {
		failpoint.Hit("another:point")
		failpoint.Hit("some:point")
		fmt.Println(i + 1)
	}
}

package storagefence_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"regent/leadership"
	"regent/leadership/fence"
	"regent/leadership/fence/storagefence"
)

func ExampleBucket_Write() {
	// yours are those of the package comment
	bucket, err := storagefence.New(storagefence.Config{Objects: newFake()})
	if err != nil {
		panic(err)
	}
	for _, token := range []leadership.Token{33, 34, 33} {
		leader := fence.Mark{Election: "planner", Token: token}
		err := bucket.Write(context.Background(), "today.json", leader, []byte(`{"state": "open"}`))
		fmt.Println(err == nil, errors.Is(err, leadership.TokenStale))
	}
	// Output:
	// true false
	// true false
	// false true
}

// A content that depends on the previous one is read, changed and replaced.
func ExampleBucket_Replace() {
	// yours are those of the package comment
	bucket, err := storagefence.New(storagefence.Config{Objects: newFake()})
	if err != nil {
		panic(err)
	}
	count := func(ctx context.Context, leader fence.Mark) (int, error) {
		for {
			o, err := bucket.Read(ctx, "count")
			if err != nil {
				return 0, err
			}
			n, _ := strconv.Atoi(string(o.Content)) // 0 if there is none yet
			_, err = bucket.Replace(ctx, "count", o.Generation, leader, []byte(strconv.Itoa(n+1)))
			if !errors.Is(err, leadership.RevisionMismatch) {
				return n + 1, err
			}
		}
	}
	for range 3 {
		fmt.Println(count(context.Background(), fence.Mark{Election: "planner", Token: 33}))
	}
	// Output:
	// 1 <nil>
	// 2 <nil>
	// 3 <nil>
}

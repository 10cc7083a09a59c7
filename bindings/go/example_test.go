package fairq_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"fairq"
)

func Example() {
	ctx := context.Background()
	client, err := fairq.Open("memory:") // or redis://host, redis-cluster://host,host, rediss://host …
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	chat, err := client.Limiter("rag:chat", fairq.Limit(4), fairq.MaxQueue(100))
	if err != nil {
		log.Fatal(err)
	}

	permit, err := chat.Acquire(ctx, fairq.MaxWait(15*time.Second), fairq.Label("tenant 7"))
	switch {
	case errors.Is(err, fairq.ErrQueueFull), errors.Is(err, fairq.ErrTimedOut):
		fmt.Println("busy; try again later")
		return
	case err != nil: // ctx.Err(), fairq.ErrUnavailable …
		log.Fatal(err)
	}
	defer permit.Close() // gives it back in the background; permit.Release(ctx) waits for the answer
	// … work; stop when permit.Lost() is closed; hand permit.Fence() to what you guard …
	fmt.Println("held:", permit.Valid())
	// Output: held: true
}

func ExampleOnPosition() {
	client, err := fairq.Open("memory:positions")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	exports, err := client.Limiter("exports", fairq.Limit(1))
	if err != nil {
		log.Fatal(err)
	}
	held, _, err := exports.TryAcquire(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	permit, err := exports.Acquire(context.Background(), fairq.OnPosition(func(p fairq.Position) {
		fmt.Println("number", p.Position)
		_ = held.Close()
	}))
	if err != nil {
		log.Fatal(err)
	}
	_ = permit.Close()
	// Output: number 1
}

func ExampleError() {
	client, err := fairq.Open("memory:errors")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	full, err := client.Limiter("full", fairq.Limit(0), fairq.MaxQueue(0))
	if err != nil {
		log.Fatal(err)
	}
	_, err = full.Acquire(context.Background())
	var e *fairq.Error
	if errors.As(err, &e) {
		_, known := e.RetryAfter()
		fmt.Println(e.Status, e.Retryable, known)
	}
	// Output: fairq: queue full true false
}

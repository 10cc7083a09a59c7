// Command lineworker is a worker of the cross-language line (see tests/languages/line.py), in Go.
//
// Reads from standard input "start TOKEN COST", "release TOKEN", and the end; says "granted TOKEN FENCE", "released
// TOKEN" or "failed TOKEN WHY".
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sync"

	"fairq"
)

type worker struct {
	limiter *fairq.Limiter
	mu      sync.Mutex // of held, and of standard output
	held    map[uint64]*fairq.Permit
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: lineworker URL NAME")
		os.Exit(2)
	}
	client, err := fairq.Open(os.Args[1])
	check(err)
	limiter, err := client.Limiter(os.Args[2], fairq.Limit(3))
	check(err)
	w := &worker{limiter: limiter, held: make(map[uint64]*fairq.Permit)}
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		w.obey(orders.Text())
	}
	check(orders.Err())
	check(client.Close())
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (w *worker) obey(order string) {
	var token, cost uint64
	if n, _ := fmt.Sscanf(order, "start %d %d", &token, &cost); n == 2 {
		go w.start(token, cost)
	} else if n, _ := fmt.Sscanf(order, "release %d", &token); n == 1 {
		go w.release(token)
	}
}

func (w *worker) start(token, cost uint64) {
	permit, err := w.limiter.Acquire(context.Background(), fairq.Cost(cost), fairq.MaxWait(fairq.Forever),
		fairq.Label(fmt.Sprintf("t%d", token)))
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		fmt.Println("failed", token, err)
		return
	}
	w.held[token] = permit
	fmt.Println("granted", token, permit.Fence())
}

func (w *worker) release(token uint64) {
	w.mu.Lock()
	permit := w.held[token]
	delete(w.held, token)
	w.mu.Unlock()
	err := permit.Release(context.Background())
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		fmt.Println("failed", token, err)
		return
	}
	fmt.Println("released", token)
}

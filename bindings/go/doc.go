// Package fairq limits how many long-running requests run at once over a whole cluster, with a strict
// first-come-first-served line in front.
//
//	client, err := fairq.Open("redis://localhost")
//	…
//	chat, err := client.Limiter("rag:chat", fairq.Limit(4), fairq.MaxQueue(100))
//	…
//	permit, err := chat.Acquire(ctx, fairq.MaxWait(15*time.Second))
//	if err != nil {
//		return err // errors.Is(err, fairq.ErrQueueFull), fairq.ErrTimedOut, ctx.Err() …
//	}
//	defer permit.Close()
//
// See [Client], [Limiter], [Permit]; package fairq/fairqhttp puts a limit in front of an http.Handler.
//
// # Goroutines and threads
//
// All of it may be used by any number of goroutines. Who waits for a permit occupies no thread: a client has one
// goroutine that asks the library what became of all requests, and it occupies one thread while there is something to
// wait for. What waits for an answer of the store (Release, Status, SetLimit, Configure, Check, Ticket.Position) does
// so with at most [MaxCalls] threads of a client; who comes then waits as a goroutine.
//
// # Errors
//
// What the library refuses is an [*Error]; errors.Is compares it with ErrTimedOut, ErrQueueFull and so on. A context
// that ends is reported as its own error, context.Canceled or context.DeadlineExceeded.
//
// # Linking
//
// The package links the shared library that pkg-config finds as fairq; with the build tag fairq_static, the archive
// beside it.
package fairq

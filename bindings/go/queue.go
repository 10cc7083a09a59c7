package fairq

import (
	"runtime"
	"sync"
	"sync/atomic"

	"fairq/internal/capi"
)

// queue is where the library tells what became of a client's requests.
//
// Whoever starts a request also looks into the queue once, in the same call: what needs no waiting, such as a free slot
// in memory, is known then. For everybody else one goroutine, the poller, waits in the library. It exists while a
// request waits or somebody watches a permit, and a little longer; so a client that is idle has no thread, and requests
// that need not wait do not wake one.
//
// Tokens are numbers that are never used again. So news of a request that is long gone concerns nobody.
type queue struct {
	handle    capi.Handle
	lastToken atomic.Uint64
	gate      chan struct{} // one in it for each quick call

	mu       sync.Mutex
	requests map[uint64]*request // all of which there may still be news
	needs    int                 // requests that wait, and permits that are watched
	polling  bool                // the poller exists
	closed   bool
	poller   sync.WaitGroup
}

// pollMS is how long the poller waits at once, and how long it stays when nobody needs it any more. Tests have less
// time.
var pollMS uint64 = 5000

// atOnce is how many events a starting request can take with it.
const atOnce = 4

func newQueue() (*queue, error) {
	handle, failure := capi.NewCompletions()
	if failure != nil {
		return nil, newError(failure)
	}
	gate := make(chan struct{}, runtime.GOMAXPROCS(0))
	return &queue{handle: handle, gate: gate, requests: make(map[uint64]*request)}, nil
}

// enter is called before a quick call of the library, one that takes its locks but does not wait for the store; and
// leave after it. While a thread waits for a lock, Go starts another, which would wait for the same lock, and so on:
// without a gate ten thousand goroutines that come at once can become as many threads, and that is the end of a Go
// program.
func (q *queue) enter() { q.gate <- struct{}{} }

func (q *queue) leave() { <-q.gate }

// start starts a request. If it has not ended at once, and wants a ticket of its own, that is returned: to be freed.
func (q *queue) start(limiter capi.Handle, asked *asking, own bool) (*request, capi.Handle, error) {
	r := &request{queue: q, token: q.lastToken.Add(1), news: make(chan struct{}, 1)}
	if !q.register(r) {
		return nil, 0, closedError()
	}
	events := buffers.Get().(*[atOnce]capi.Event)
	defer buffers.Put(events)
	q.enter()
	count, ticket, failure := capi.Start(limiter, q.handle, r.token, &asked.Request, asked.ticketHandle(), own, events[:])
	q.leave()
	if failure != nil {
		if !q.forget(r) {
			return nil, 0, closedError() // the queue was closed under it
		}
		return nil, 0, newError(failure)
	}
	q.dispatch(events[:count])
	q.need(r)
	return r, ticket, nil
}

var buffers = sync.Pool{New: func() any { return new([atOnce]capi.Event) }}

// register has news of r arrive; not if the queue is closed.
func (q *queue) register(r *request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.requests[r.token] = r
	return true
}

// forget ends the interest in r. It returns whether the queue is still open.
func (q *queue) forget(r *request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.requests, r.token)
	q.needNoMore(r)
	return !q.closed
}

// need has the poller look after r, unless there is nothing to wait for.
func (q *queue) need(r *request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !r.ended {
		q.needLocked(r)
	}
}

func (q *queue) needLocked(r *request) {
	if r.needed || q.closed {
		return
	}
	r.needed = true
	q.needs++
	if !q.polling {
		q.polling = true
		q.poller.Add(1)
		go q.poll()
	}
}

func (q *queue) needNoMore(r *request) {
	if r.needed {
		r.needed = false
		q.needs--
	}
}

// poll is the poller. It holds on to the queue alone, so that a client that is forgotten can be collected.
func (q *queue) poll() {
	defer q.poller.Done()
	events := make([]capi.Event, capi.MaxEvents)
	for {
		count, open := capi.Poll(q.handle, pollMS, events)
		q.dispatch(events[:count])
		if !open || !q.goesOn(count) {
			return
		}
		// Who was woken goes on at once, on this very processor, which the next call would keep for a while.
		runtime.Gosched()
	}
}

// goesOn is whether the poller is still wanted: somebody needs it, or did a moment ago.
func (q *queue) goesOn(count int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.polling = q.needs > 0 || count > 0
	return q.polling
}

// collect takes what is in the queue, and does not wait.
func (q *queue) collect() {
	var events [capi.MaxEvents]capi.Event
	for {
		count, open := capi.Poll(q.handle, 0, events[:])
		q.dispatch(events[:count])
		if count == 0 || !open {
			return
		}
	}
}

// dispatch passes on what became of requests.
func (q *queue) dispatch(events []capi.Event) {
	for at := range events {
		event := &events[at]
		var err error
		if event.Status != capi.OK {
			err = newError(capi.TakeFailure(event.Status, event.Err))
		}
		if !q.tell(event, err) && event.Permit != 0 {
			q.giveBack(event.Permit) // there is nobody to take it
		}
	}
}

// tell passes one piece of news on. It returns whether somebody took it.
func (q *queue) tell(event *capi.Event, err error) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	r := q.requests[event.Token]
	if r == nil {
		return false
	}
	switch event.Kind {
	case capi.EventDone:
		if r.ended {
			return false
		}
		q.end(r, granted{event.Permit, event.Fence, event.Order}, err)
	case capi.EventPosition:
		r.position, r.moved = Position{event.Position, estimate(event.EstimateMS)}, true
		r.ring()
	case capi.EventPermitLost:
		q.loseLocked(r, err)
	}
	return true
}

// end is the one end of a request.
func (q *queue) end(r *request, permit granted, err error) {
	r.ended, r.permit, r.err = true, permit, err
	if err != nil {
		delete(q.requests, r.token)
	}
	if r.lost == nil { // else somebody watches it already
		q.needNoMore(r)
	}
	r.ring()
}

// giveBack gives a permit back in the background. It returns how the permit stood before.
func (q *queue) giveBack(permit capi.Handle) (state int32) {
	q.enter()
	defer q.leave()
	return capi.FreePermit(permit)
}

// cancel cancels the request of a ticket. It returns false if that had ended before.
func (q *queue) cancel(ticket capi.Handle) bool {
	q.enter()
	defer q.leave()
	return capi.Cancel(ticket) == nil
}

// freeTicket frees a ticket; its request goes on.
func (q *queue) freeTicket(ticket capi.Handle) {
	q.enter()
	defer q.leave()
	capi.FreeTicket(ticket)
}

// lose notes that a permit is lost.
func (q *queue) lose(r *request, why error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.loseLocked(r, why)
}

func (q *queue) loseLocked(r *request, why error) {
	q.needNoMore(r)
	if r.lostWhy != nil {
		return
	}
	r.lostWhy = why
	if r.lost != nil {
		close(r.lost)
	}
}

// close ends the queue. Whoever still waits is told that the client is closed.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	for _, r := range q.requests {
		if !r.ended {
			q.end(r, granted{}, closedError())
		}
	}
	q.mu.Unlock()
	capi.FreeCompletions(q.handle)
	q.poller.Wait()
}

package fairq

import (
	"fairq/internal/capi"
)

// request is one request, from its start until its permit is given back. All but the first three fields are the
// queue's, and guarded by its lock.
type request struct {
	queue *queue
	token uint64
	news  chan struct{} // holds one ring, which says: look

	needed   bool // counted in queue.needs
	ended    bool
	permit   granted
	err      error
	position Position
	moved    bool // the position is new
	lost     chan struct{}
	lostWhy  error
}

// granted is what a grant brings.
type granted struct {
	handle       capi.Handle
	fence, order uint64
}

// ring wakes the goroutine that acquires. It never blocks.
func (r *request) ring() {
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// look is how the request stands. A new position is told once.
func (r *request) look() (ended bool, position Position, moved bool) {
	r.queue.mu.Lock()
	defer r.queue.mu.Unlock()
	moved = r.moved
	r.moved = false
	return r.ended, r.position, moved
}

// wait waits for the end, however it comes. The library has promised one.
func (r *request) wait() {
	for {
		if ended, _, _ := r.look(); ended {
			return
		}
		<-r.news
	}
}

// take is the permit, or why there is none. To be called after the end, once.
func (r *request) take() (granted, error) {
	r.queue.mu.Lock()
	defer r.queue.mu.Unlock()
	if r.err != nil {
		return granted{}, r.err
	}
	return r.permit, nil
}

// giveUp cancels the request, waits for its end, and gives back a grant that has won.
func (r *request) giveUp(ticket capi.Handle) {
	// It may have ended already, which is no failure. The store is told in the background.
	r.queue.cancel(ticket)
	r.wait()
	if permit, err := r.take(); err == nil {
		r.queue.forget(r)
		r.queue.giveBack(permit.handle)
	}
}

// watch is the channel that is closed when the permit is lost.
func (r *request) watch() <-chan struct{} {
	q := r.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if r.lost == nil {
		r.lost = make(chan struct{})
		if r.lostWhy != nil {
			close(r.lost)
		} else if q.requests[r.token] == r {
			q.needLocked(r)
		}
	}
	return r.lost
}

// whyLost is why the permit was lost; nil while that is not known.
func (r *request) whyLost() error {
	r.queue.mu.Lock()
	defer r.queue.mu.Unlock()
	return r.lostWhy
}

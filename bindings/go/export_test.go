package fairq

import (
	"errors"
	"testing"
)

// SetPollMS is for TestMain.
func SetPollMS(ms uint64) { pollMS = ms }

// OpenRequests is how many requests of a limiter's client there may still be news of.
func OpenRequests(l *Limiter) int {
	q := l.client.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.requests)
}

// The library settles everybody when its client is closed. Should a request come between that and the end of the queue,
// it ends all the same.
func TestTheQueueEndsWhoeverIsLeft(t *testing.T) {
	q, err := newQueue()
	if err != nil {
		t.Fatal(err)
	}
	left := &request{queue: q, token: 1, news: make(chan struct{}, 1)}
	if !q.register(left) {
		t.Error("it is open")
	}
	q.need(left)
	q.close()
	<-left.news
	left.wait()
	if _, err := left.take(); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if q.register(left) {
		t.Error("it is closed")
	}
	q.close()
}

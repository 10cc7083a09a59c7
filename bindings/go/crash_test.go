package fairq_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairq"
	"fairq/internal/redistest"
)

const lease = 500 * time.Millisecond

// process is another process of this program, in one of the roles of child.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	orders io.WriteCloser
	says   *bufio.Scanner
}

func spawn(t *testing.T, role, url, name string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FAIRQ_TEST_CHILD="+role, "FAIRQ_TEST_URL="+url, "FAIRQ_TEST_NAME="+name)
	cmd.Stderr = os.Stderr
	orders, err := cmd.StdinPipe()
	ok(t, err)
	out, err := cmd.StdoutPipe()
	ok(t, err)
	ok(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &process{t, cmd, orders, bufio.NewScanner(out)}
}

// hears waits for the next line that the process says.
func (p *process) hears(want string) {
	p.t.Helper()
	if !p.says.Scan() || p.says.Text() != want {
		p.t.Fatalf("it said %q, and not %q (%v)", p.says.Text(), want, p.says.Err())
	}
}

func (p *process) signal(s os.Signal) { ok(p.t, p.cmd.Process.Signal(s)) }

// child is what another process of this program does.
func child(role string) {
	client, err := fairq.Open(os.Getenv("FAIRQ_TEST_URL"))
	check(err)
	limiter, err := client.Limiter(os.Getenv("FAIRQ_TEST_NAME"), fairq.Limit(2), fairq.Lease(lease))
	check(err)
	switch role {
	case "hold":
		hold(limiter)
	case "lose":
		lose(limiter)
	}
	check(client.Close())
}

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// hold holds the whole limit and waits with ten more, until it is killed.
func hold(limiter *fairq.Limiter) {
	for i := 0; i < 2; i++ {
		permit, err := limiter.Acquire(context.Background())
		check(err)
		defer permit.Close()
	}
	for i := 0; i < 10; i++ {
		go func() { _, _ = limiter.Acquire(context.Background(), fairq.MaxWait(fairq.Forever)) }()
	}
	for {
		s, err := limiter.Status(context.Background())
		check(err)
		if s.Waiting == 10 {
			break
		}
	}
	fmt.Println("holds")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// lose takes the whole limit, tells when and how often it is lost, and acquires again.
func lose(limiter *fairq.Limiter) {
	permit, err := limiter.Acquire(context.Background(), fairq.Cost(2))
	check(err)
	lost := permit.Lost()
	fmt.Println("holds")
	<-lost
	if !errors.Is(permit.Err(), fairq.ErrPermitLost) || permit.Valid() {
		check(fmt.Errorf("%v, valid: %v", permit.Err(), permit.Valid()))
	}
	fmt.Println("lost")
	again, err := limiter.Acquire(context.Background(), fairq.MaxWait(fairq.Forever))
	check(err)
	if again.Fence() <= permit.Fence() {
		check(errors.New("the fence is not greater"))
	}
	check(again.Release(context.Background()))
	fmt.Println("again")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// P8: what a killed process held, and its places in line, are gone after the lease.
func TestAKilledProcessHoldsNothing(t *testing.T) {
	server := redistest.Shared(t)
	limiter := newLimiter(t, server.URL(), fairq.Limit(2), fairq.Lease(lease))
	other := spawn(t, "hold", server.URL(), limiter.Name())
	other.hears("holds")
	equal(t, status(t, limiter).Used, 2)
	other.signal(syscall.SIGKILL)
	first, second := acquire(t, limiter), acquire(t, limiter)
	equal(t, first.Valid() && second.Valid(), true)
	ok(t, first.Close())
	ok(t, second.Close())
	allGivenBack(t, limiter)
}

// S49: a process that stands still for longer than the lease learns once that its permit was lost, and acquires again.
func TestAProcessThatStoodStillLearnsOfItsLoss(t *testing.T) {
	server := redistest.Shared(t)
	limiter := newLimiter(t, server.URL(), fairq.Limit(2), fairq.Lease(lease))
	other := spawn(t, "lose", server.URL(), limiter.Name())
	other.hears("holds")
	other.signal(syscall.SIGSTOP)
	permit := acquire(t, limiter, fairq.Cost(2))
	other.signal(syscall.SIGCONT)
	other.hears("lost")
	equal(t, permit.Valid(), true)
	ok(t, permit.Close())
	other.hears("again")
	ok(t, other.orders.Close())
	ok(t, other.cmd.Wait())
	allGivenBack(t, limiter)
}

// P9: a server that is killed and comes back empty, while some wait and some hold.
func TestTheServerIsRestarted(t *testing.T) {
	server := redistest.Start(t)
	client := open(t, server.URL())
	limiter := limiterOf(t, client, fairq.Limit(1), fairq.Lease(time.Second))
	held := acquire(t, limiter)
	const waiters = 10
	order := make(chan int, waiters)
	for i := 0; i < waiters; i++ {
		go func(i int) {
			permit, err := limiter.Acquire(soon(t), fairq.MaxWait(fairq.Forever))
			order <- i
			if err != nil {
				t.Error(err)
				return
			}
			_ = permit.Close()
		}(i)
		inLine(t, limiter, uint64(i+1))
	}
	server.Kill()
	eventually(t, "it is noticed", func() bool { return !held.Valid() })
	equal(t, held.State(), fairq.PermitUnconfirmed)
	ok(t, held.Err())
	server.Restart(t)
	eventually(t, "the permit is confirmed", held.Valid)
	eventually(t, "the line is back", func() bool {
		s, err := limiter.Status(soon(t))
		return err == nil && s.Waiting == waiters && s.Used == 1
	})
	ok(t, held.Release(soon(t)))
	for i := 0; i < waiters; i++ {
		equal(t, <-order, i)
	}
	allGivenBack(t, limiter)
}

func TestWhatIsLeftInRedis(t *testing.T) {
	server := redistest.Shared(t)
	limiter := newLimiter(t, server.URL(), fairq.Limit(2))
	ok(t, acquire(t, limiter).Release(soon(t)))
	left := func() string {
		key := "fq:{" + limiter.Name() + "}"
		return strings.Join([]string{
			server.Do(t, "ZCARD", key+":queue"), server.Do(t, "ZCARD", key+":held"),
			server.Do(t, "ZCARD", key+":instances"), server.Do(t, "HLEN", key),
		}, " ")
	}
	before := left()
	freed := make(chan *fairq.Permit, 100)
	go func() {
		for permit := range freed {
			_ = permit.Close()
		}
	}()
	cancelOften(t, limiter, rounds(5000), freed)
	close(freed)
	allGivenBack(t, limiter)
	equal(t, left(), before)
}

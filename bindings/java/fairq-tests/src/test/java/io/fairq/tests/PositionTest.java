package io.fairq.tests;

import static io.fairq.testing.Checks.PATIENT;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fairq.Limiter;
import io.fairq.LimiterOptions;
import io.fairq.Permit;
import io.fairq.Position;
import io.fairq.Ticket;
import io.fairq.testing.Checks;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Where a request stands in line. */
@ParameterizedClass
@EnumSource(Store.class)
class PositionTest extends StoreTest {
    PositionTest(Store store) {
        super(store);
    }

    private Limiter quick() {
        return limiter(LimiterOptions.ofLimit(1).poll(Duration.ofMillis(20)));
    }

    /** Remembers all it is told, and asks for one more each time. */
    static class Subscriber implements Flow.Subscriber<Position> {
        final List<Long> seen = Collections.synchronizedList(new ArrayList<>());
        final CompletableFuture<Void> end = new CompletableFuture<>();
        volatile Flow.Subscription subscription;

        @Override
        public void onSubscribe(Flow.Subscription given) {
            subscription = given;
            given.request(1);
        }

        @Override
        public void onNext(Position position) {
            seen.add(position.position());
            subscription.request(1);
        }

        @Override
        public void onError(Throwable error) {
            end.completeExceptionally(error);
        }

        @Override
        public void onComplete() {
            end.complete(null);
        }
    }

    @Test
    void aListener() throws Exception {
        Limiter limiter = quick();
        Permit first = limiter.acquire();
        CompletableFuture<Permit> second = limiter.acquireAsync(PATIENT);
        Checks.inLine(limiter, 1);
        List<Long> seen = Collections.synchronizedList(new ArrayList<>());
        CompletableFuture<Permit> third = limiter.acquireAsync(PATIENT.onPosition(position -> {
            seen.add(position.position());
            throw new IllegalStateException("what a listener throws is logged");
        }));
        Checks.eventually("it is second", () -> seen.contains(2L));
        first.close();
        Checks.get(second);
        Checks.eventually("it is first", () -> seen.contains(1L));
        second.join().close();
        Checks.get(third).close();
        assertEquals(seen.stream().sorted(Collections.reverseOrder()).toList(), seen);
    }

    @Test
    void aListenerOfAThread() throws Exception {
        Limiter limiter = quick();
        Permit first = limiter.acquire();
        CompletableFuture<Position> seen = new CompletableFuture<>();
        Thread waiter = Threads.start(() -> {
            try (Permit permit = limiter.acquire(PATIENT.onPosition(seen::complete))) {
                permit.isValid();
            } catch (InterruptedException unexpected) {
                throw new AssertionError(unexpected);
            }
        });
        assertEquals(1, Checks.get(seen).position());
        first.close();
        Checks.join(waiter);
    }

    @Test
    void aPublisher() throws Exception {
        Limiter limiter = quick();
        Permit first = limiter.acquire();
        Ticket ticket = limiter.ticket();
        Subscriber early = new Subscriber();
        ticket.positions().subscribe(early);
        CompletableFuture<Permit> second = limiter.acquireAsync(PATIENT, ticket);
        Checks.eventually("it is told", () -> early.seen.contains(1L));
        Subscriber late = new Subscriber();
        ticket.positions().subscribe(late);
        Checks.eventually("the latest comes first", () -> late.seen.contains(1L));
        Subscriber gone = new Subscriber();
        ticket.positions().subscribe(gone);
        gone.subscription.cancel();
        first.close();
        Checks.get(second).close();
        Checks.get(early.end);
        Checks.get(late.end);
        assertTrue(!gone.end.isDone(), "it has cancelled");
        Subscriber after = new Subscriber();
        ticket.positions().subscribe(after);
        Checks.get(after.end);
        assertEquals(List.of(), after.seen);
    }

    /** One that is slow has the latest in the end, and not all. */
    @Test
    void aSlowSubscriber() throws Exception {
        Limiter limiter = quick();
        Permit held = limiter.acquire();
        List<CompletableFuture<Permit>> others = new ArrayList<>();
        for (int at = 0; at < 5; at++) {
            others.add(limiter.acquireAsync(PATIENT));
        }
        Checks.inLine(limiter, 5);
        Ticket ticket = limiter.ticket();
        Subscriber slow = new Subscriber() {
            @Override
            public void onNext(Position position) {
                seen.add(position.position()); // and asks for no more
            }
        };
        ticket.positions().subscribe(slow);
        CompletableFuture<Permit> last = limiter.acquireAsync(PATIENT, ticket);
        Checks.eventually("it is told", () -> slow.seen.equals(List.of(6L)));
        for (int at = 0; at < 5; at++) {
            assertTrue(others.get(at).cancel(true));
        }
        Checks.eventually("it is next", () -> ticket.position().orElseThrow().position() == 1);
        Checks.eventually("the store has told", () -> ticket.lastPosition().orElseThrow().position() == 1);
        Subscriber other = new Subscriber();
        ticket.positions().subscribe(other);
        Checks.eventually("another is told", () -> other.seen.contains(1L));
        slow.subscription.request(1);
        Checks.eventually("it is told the latest", () -> slow.seen.equals(List.of(6L, 1L)));
        held.close();
        Checks.get(last).close();
        Checks.get(slow.end);
    }

    @Test
    void aSubscriberThatAsksForNothing() throws Exception {
        Subscriber wrong = new Subscriber() {
            @Override
            public void onSubscribe(Flow.Subscription given) {
                given.request(0);
            }
        };
        limiter(1).ticket().positions().subscribe(wrong);
        assertInstanceOf(IllegalArgumentException.class, Checks.failure(wrong.end));
    }
}

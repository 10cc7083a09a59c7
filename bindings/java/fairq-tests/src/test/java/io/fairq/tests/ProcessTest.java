package io.fairq.tests;

import static io.fairq.testing.Checks.PATIENT;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fairq.Client;
import io.fairq.ClientOptions;
import io.fairq.FairqException;
import io.fairq.Limiter;
import io.fairq.LimiterOptions;
import io.fairq.LimiterStatus;
import io.fairq.Permit;
import io.fairq.PermitState;
import io.fairq.Request;
import io.fairq.testing.Checks;
import io.fairq.testing.RedisServer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Processes that are killed or stopped, and a server that is. */
class ProcessTest {
    private static final LimiterOptions OPTIONS =
            LimiterOptions.ofLimit(3).lease(Duration.ofMillis(500)).poll(Duration.ofMillis(50));

    private final String url = Store.REDIS.url();
    private final String name = StoreTest.newName();

    private Child holder() throws Exception {
        return new Child(Holder.class, url, name, "3", "500");
    }

    private static Set<String> held(Child child) throws Exception {
        Set<String> fences = new TreeSet<>();
        for (int at = 0; at < 3; at++) {
            String line = child.line();
            assertTrue(line.startsWith("held "), line);
            fences.add(line.substring("held ".length()));
        }
        return fences;
    }

    /** P8: what it held is free after the lease. */
    @Test
    void aKilledProcess() throws Exception {
        try (Child child = holder(); Client client = Client.open(url)) {
            held(child);
            Limiter limiter = client.limiter(name, OPTIONS);
            assertEquals(3, limiter.status().used());
            child.signal("KILL");
            try (Permit all = limiter.acquire(PATIENT.cost(3))) {
                assertTrue(all.isValid());
            }
            Checks.idle(limiter);
        }
    }

    /** S49: each of its permits is told lost once, and it may ask again. */
    @Test
    void aProcessThatWasStoppedForTooLong() throws Exception {
        try (Child child = holder(); Client client = Client.open(url)) {
            Set<String> fences = held(child);
            Limiter limiter = client.limiter(name, OPTIONS);
            child.signal("STOP");
            Permit all = limiter.acquire(PATIENT.cost(3));
            child.signal("CONT");
            Set<String> lost = new TreeSet<>();
            for (int at = 0; at < 3; at++) {
                String line = child.line();
                assertTrue(line.startsWith("lost "), line);
                lost.add(line.substring("lost ".length()));
            }
            assertEquals(fences, lost);
            child.order("go on");
            Checks.inLine(limiter, 1);
            all.release();
            child.says("acquired again");
            assertEquals(List.of(), child.finish());
            Checks.idle(limiter);
        }
    }

    /** P9: all put back what they hold and wait for, in the order they had. */
    @Test
    void aServerThatLosesAll() throws Exception {
        try (RedisServer server = RedisServer.start();
                Client client = Client.open(server.url())) {
            Limiter limiter = client.limiter(name, OPTIONS.limit(1));
            Permit held = limiter.acquire();
            List<Integer> order = Collections.synchronizedList(new ArrayList<>());
            List<CompletableFuture<Void>> ends = new ArrayList<>();
            for (int at = 0; at < 10; at++) {
                int number = at;
                ends.add(limiter.acquireAsync(Request.waitForever()).thenAccept(permit -> {
                    order.add(number);
                    permit.close();
                }));
                Checks.inLine(limiter, at + 1);
            }
            server.kill();
            Checks.eventually("it is noticed", () -> held.state() == PermitState.UNCONFIRMED);
            assertTrue(!held.isValid());
            server.restart();
            Checks.eventually("the permit is confirmed", held::isValid);
            Checks.eventually("the line is back", () -> isBack(limiter));
            held.release();
            for (CompletableFuture<Void> end : ends) {
                Checks.get(end);
            }
            assertEquals(IntStream.range(0, 10).boxed().collect(Collectors.toList()), order);
            Checks.idle(limiter);
        }
    }

    private static boolean isBack(Limiter limiter) {
        try {
            LimiterStatus status = limiter.status();
            return status.waiting() == 10 && status.used() == 1;
        } catch (FairqException notYet) {
            return false;
        }
    }

    /** Virtual threads that ask a store which does not answer keep no other from running. */
    @Test
    void nobodyIsPinned() throws Exception {
        Threads.needVirtual();
        ClientOptions options = ClientOptions.defaults().ioTimeout(Checks.PATIENCE);
        try (RedisServer server = RedisServer.start();
                Client client = Client.open(server.url(), options)) {
            Limiter limiter = client.limiter(name, OPTIONS);
            Permit permit = limiter.acquire();
            server.signal("STOP");
            AtomicInteger answers = new AtomicInteger();
            List<Thread> asking = new ArrayList<>();
            for (int at = 0; at < 10; at++) {
                asking.add(Threads.startVirtual(() -> {
                    limiter.status();
                    answers.incrementAndGet();
                }));
            }
            asking.add(Threads.startVirtual(permit::release));
            CompletableFuture<Integer> other = new CompletableFuture<>();
            Threads.startVirtual(() -> other.complete(answers.get()));
            try {
                assertEquals(0, Checks.get(other));
            } finally {
                server.signal("CONT");
            }
            for (Thread thread : asking) {
                Checks.join(thread);
            }
            assertEquals(10, answers.get());
            Checks.idle(limiter);
        }
    }

    /** S53: with a poll so rare, only the message can be in time; a future is told as soon as a thread. */
    @Test
    void grantsComeByMessage() throws Exception {
        try (Client one = Client.open(url); Client other = Client.open(url)) {
            LimiterOptions rare = LimiterOptions.ofLimit(1).poll(Duration.ofSeconds(60));
            Limiter limiter = one.limiter(name, rare);
            Limiter same = other.limiter(name, rare);
            for (int round = 0; round < 50; round++) {
                Permit held = limiter.acquire(PATIENT);
                CompletableFuture<Permit> waiting = same.acquireAsync(PATIENT);
                Checks.inLine(limiter, 1);
                held.close();
                CompletableFuture<Permit> back = limiter.acquireAsync(PATIENT);
                Checks.get(waiting).close();
                Checks.get(back).close();
            }
            Checks.idle(limiter);
        }
    }

    /** S51: the answer to a release is lost; it is asked again, and freed once. */
    @Test
    void theAnswerToAReleaseIsLost() throws Exception {
        try (Proxy proxy = new Proxy(url);
                Client client = Client.open(proxy.url());
                Client direct = Client.open(url)) {
            Limiter limiter = client.limiter(name, OPTIONS);
            Permit kept = limiter.acquire();
            Permit permit = limiter.acquire();
            proxy.dropNextAnswer();
            permit.release();
            assertEquals(1, proxy.dropped());
            assertEquals(1, direct.limiter(name).status().used());
            assertTrue(kept.isValid());
            kept.release();
            Checks.idle(direct.limiter(name));
        }
    }
}

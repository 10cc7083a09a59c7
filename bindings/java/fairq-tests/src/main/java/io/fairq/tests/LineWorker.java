package io.fairq.tests;

import io.fairq.Client;
import io.fairq.Limiter;
import io.fairq.LimiterOptions;
import io.fairq.Permit;
import io.fairq.Request;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;

/**
 * A worker of the cross-language line (see {@code tests/languages/line.py}), in Java: {@code LineWorker URL NAME}. Reads
 * {@code start TOKEN COST}, {@code release TOKEN}, and the end; says {@code granted TOKEN FENCE}, {@code released TOKEN} or
 * {@code failed TOKEN WHY}.
 */
public final class LineWorker {
    private final Limiter limiter;
    private final Map<String, Permit> held = new ConcurrentHashMap<>();

    private LineWorker(Limiter limiter) {
        this.limiter = limiter;
    }

    private void start(String token, long cost) {
        Request request = Request.waitForever().cost(cost).label("t" + token);
        limiter.acquireAsync(request).whenComplete((permit, error) -> {
            if (permit == null) {
                say("failed", token, error instanceof CompletionException ? error.getCause().getMessage() : error.getMessage());
            } else {
                held.put(token, permit);
                say("granted", token, Long.toString(permit.fence()));
            }
        });
    }

    private void release(String token) {
        held.remove(token).release();
        say("released", token);
    }

    private static synchronized void say(String... words) {
        System.out.println(String.join(" ", words));
        System.out.flush();
    }

    private void obey(BufferedReader orders) throws IOException {
        for (String line = orders.readLine(); line != null; line = orders.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("start")) {
                start(words[1], Long.parseLong(words[2]));
            } else {
                release(words[1]);
            }
        }
    }

    /**
     * Runs it.
     *
     * @param arguments where the store is, and the limiter's name
     * @throws IOException when there are no orders to be read
     */
    public static void main(String[] arguments) throws IOException {
        try (Client client = Client.open(arguments[0]);
                BufferedReader orders = new BufferedReader(new InputStreamReader(System.in))) {
            new LineWorker(client.limiter(arguments[1], LimiterOptions.ofLimit(3))).obey(orders);
        }
    }
}

package io.fairq.tests;

import io.fairq.Client;
import io.fairq.Limiter;
import io.fairq.LimiterOptions;
import io.fairq.Permit;
import io.fairq.Request;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** A process that holds all of a limiter, and waits in its line as well. {@code Holder URL NAME LIMIT LEASE-MS}. */
final class Holder {
    private Holder() {}

    public static void main(String[] arguments) throws Exception {
        long limit = Long.parseLong(arguments[2]);
        LimiterOptions options =
                LimiterOptions.ofLimit(limit).lease(Duration.ofMillis(Long.parseLong(arguments[3]))).poll(Duration.ofMillis(50));
        try (Client client = Client.open(arguments[0])) {
            Limiter limiter = client.limiter(arguments[1], options);
            List<Permit> permits = new ArrayList<>();
            for (int at = 0; at < limit; at++) {
                Permit permit = limiter.acquire(Request.waitForever());
                permit.onLost(why -> System.out.println("lost " + permit.fence()));
                permits.add(permit);
                System.out.println("held " + permit.fence());
            }
            System.in.read();
            if (permits.stream().anyMatch(Permit::isValid)) {
                System.out.println("valid");
            }
            permits.forEach(Permit::close);
            limiter.acquire(Request.waitForever()).release();
            System.out.println("acquired again");
        }
    }
}

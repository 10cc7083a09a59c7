package io.fairq.spring.metrics;

import io.fairq.Client;
import io.fairq.FairqException;
import java.util.Locale;
import org.springframework.boot.actuate.health.AbstractHealthIndicator;
import org.springframework.boot.actuate.health.Health;

/** Up when the store can be reached, and is fit: see {@link Client#check}. */
final class FairqHealthIndicator extends AbstractHealthIndicator {
    private final Client client;

    FairqHealthIndicator(Client client) {
        super("fairq is not healthy");
        this.client = client;
    }

    @Override
    protected void doHealthCheck(Health.Builder builder) {
        builder.withDetail("version", Client.libraryVersion());
        try {
            client.check();
            builder.up();
        } catch (FairqException error) { // whose message never has a password in it
            builder.down(error).withDetail("status", error.status().name().toLowerCase(Locale.ROOT));
        }
    }
}

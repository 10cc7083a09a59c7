package io.fairq.spring;

import io.fairq.Client;
import java.time.Duration;
import org.springframework.boot.web.context.WebServerGracefulShutdownLifecycle;
import org.springframework.context.SmartLifecycle;

/**
 * Closes the client at shutdown, in the phase in which web servers stop to take requests and wait for those that run: who waits in
 * line is told at once that it is over, and who holds a permit is given time. What uses limiters and has to end before
 * (listeners of queues, schedulers) has a higher phase as it is.
 */
final class ClientLifecycle implements SmartLifecycle {
    private final Client client;
    private final Duration drain;
    private volatile boolean running;

    ClientLifecycle(Client client, Duration drain) {
        this.client = client;
        this.drain = drain;
    }

    @Override
    public int getPhase() {
        return WebServerGracefulShutdownLifecycle.SMART_LIFECYCLE_PHASE;
    }

    @Override
    public void start() {
        running = true;
    }

    @Override
    public boolean isRunning() {
        return running;
    }

    @Override
    public void stop() {
        running = false;
        client.close(drain);
    }

    /** Beside the others of the phase, which wait for those whom this sends away. */
    @Override
    public void stop(Runnable callback) {
        Thread closing = new Thread(() -> {
            try {
                stop();
            } finally {
                callback.run();
            }
        });
        closing.setName("fairq-drain");
        closing.start();
    }
}

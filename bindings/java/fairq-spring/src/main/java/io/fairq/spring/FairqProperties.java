package io.fairq.spring;

import java.time.Duration;
import java.util.Map;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * What {@code fairq.*} in the configuration means. Keys that there are not are refused.
 *
 * @param url Where the store is: memory: (this process alone), redis://host, redis-cluster://host:port,host:port,
 *     redis-sentinel://host:port,host:port/SERVICE, each also with rediss (TLS), or unix:///path. The environment variable
 *     FAIRQ_URL says it too.
 * @param drain How long what is held at shutdown may be held still. Keep it below spring.lifecycle.timeout-per-shutdown-phase.
 * @param client Options of the client.
 * @param limiters Limiters by name. A name with other characters than letters, digits and dashes is written in brackets, as in
 *     fairq.limiters[rag:chat].limit.
 * @param sse Event streams that show clients their place in line.
 * @param web How web applications tell of refusals.
 * @param metrics Metrics, where Micrometer is there.
 */
@ConfigurationProperties(value = "fairq", ignoreUnknownFields = false)
public record FairqProperties(
        @DefaultValue("memory:") String url,
        @DefaultValue("25s") Duration drain,
        @DefaultValue OfClient client,
        @DefaultValue Map<String, OfLimiter> limiters,
        @DefaultValue Sse sse,
        @DefaultValue Web web,
        @DefaultValue Metrics metrics) {

    /**
     * Options of the client; what is not given is as the library has it.
     *
     * @param connectTimeout How long an attempt to connect may take; 2s by default.
     * @param ioTimeout How long the server may take to answer before the connection is given up; 2s by default.
     * @param subscribe Whether to listen for grants by Pub/Sub, as by default; without, only polling finds them.
     * @param maxTickets How many requests and permits this process may have at once; 100000 by default.
     * @param description What operators see of this instance; by default the host and the process id.
     * @param username The user to log in as, unless the URL names one.
     * @param password The password, unless the URL or a file has it.
     * @param passwordFile A file with the password, read for each connection: a changed one is taken over.
     * @param sentinelPasswordFile The same for the login of sentinels.
     * @param tlsCaFile With rediss://, the authorities to trust in the place of the system's (PEM).
     * @param tlsCertFile With rediss://, this client's certificate, for servers that want one (PEM).
     * @param tlsKeyFile The certificate's private key (PEM, not encrypted); may be the same file.
     */
    public record OfClient(
            Duration connectTimeout,
            Duration ioTimeout,
            Boolean subscribe,
            Long maxTickets,
            String description,
            String username,
            String password,
            String passwordFile,
            String sentinelPasswordFile,
            String tlsCaFile,
            String tlsCertFile,
            String tlsKeyFile) {
        /** Nothing of it, because of the password. */
        @Override
        public String toString() {
            return "OfClient";
        }
    }

    /**
     * What this process declares of a limiter; what is not given is as the library has it.
     *
     * @param limit How much cost may be held at once; 0 admits nobody. Without it the limiter is one that others declare.
     * @param maxQueue How many may wait, 10000 by default; or unbounded; 0: who cannot be admitted at once is rejected.
     * @param maxWait How long a request waits that does not say so itself, 30s by default; or forever.
     * @param lease After how long a silence of its process a slot is free again; 10s by default, 100ms to 1d.
     * @param maxHold How long a permit may be held; 0, by default: as long as its process lives.
     * @param idle After how long without any use the store forgets the limiter; 10m by default, at least two leases.
     * @param poll How often an instance with waiting requests asks, should no message come; 1s by default, 10ms to 60s.
     * @param outage What to do while the store is away: wait, as by default, fail, or local:N (each instance admits up to N).
     */
    public record OfLimiter(
            Long limit,
            String maxQueue,
            String maxWait,
            Duration lease,
            Duration maxHold,
            Duration idle,
            Duration poll,
            String outage) {}

    /**
     * Event streams that show clients their place in line.
     *
     * @param keepAlive After how long in line a comment is sent, so that proxies keep the connection and it is noticed when the
     *     client has gone.
     */
    public record Sse(@DefaultValue("15s") Duration keepAlive) {}

    /**
     * How web applications tell of refusals.
     *
     * @param handleExceptions Whether errors of fairq that no other handler takes become responses with the status 429, 503 or 400.
     */
    public record Web(@DefaultValue("true") boolean handleExceptions) {}

    /**
     * Metrics, where Micrometer is there.
     *
     * @param refresh How often the store is asked how the limiters stand.
     */
    public record Metrics(@DefaultValue("10s") Duration refresh) {}
}

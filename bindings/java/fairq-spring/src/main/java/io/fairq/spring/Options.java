package io.fairq.spring;

import io.fairq.Client;
import io.fairq.ClientOptions;
import io.fairq.InvalidException;
import io.fairq.Limiter;
import io.fairq.LimiterOptions;
import java.time.Duration;
import java.util.function.BiFunction;
import java.util.function.Supplier;
import org.springframework.boot.convert.DurationStyle;

/** Opens what the configuration asks for, and says where in it the mistake is. */
final class Options {
    private static final String FOREVER = "forever";

    private Options() {}

    static ClientOptions of(FairqProperties.OfClient client) {
        return naming("fairq.client", () -> {
            ClientOptions options = ClientOptions.defaults();
            options = given(options, client.connectTimeout(), ClientOptions::connectTimeout);
            options = given(options, client.ioTimeout(), ClientOptions::ioTimeout);
            options = given(options, client.subscribe(), ClientOptions::subscribe);
            options = given(options, client.maxTickets(), ClientOptions::maxTickets);
            options = given(options, client.description(), ClientOptions::description);
            options = given(options, client.username(), ClientOptions::username);
            options = given(options, client.password(), ClientOptions::password);
            options = given(options, client.passwordFile(), (to, value) -> to.option("password_file", value));
            options = given(
                    options, client.sentinelPasswordFile(), (to, value) -> to.option("sentinel_password_file", value));
            options = given(options, client.tlsCaFile(), (to, value) -> to.option("tls_ca_file", value));
            options = given(options, client.tlsCertFile(), (to, value) -> to.option("tls_cert_file", value));
            return given(options, client.tlsKeyFile(), (to, value) -> to.option("tls_key_file", value));
        });
    }

    static Client open(String url, ClientOptions options) {
        try {
            return naming("fairq.url or fairq.client", () -> Client.open(url, options));
        } catch (UnsatisfiedLinkError error) {
            throw new FairqSetupException(
                    "The shared library of fairq cannot be loaded: " + error.getMessage(),
                    "Add io.fairq:fairq-natives for this platform to the class path, or let the system property fairq.library "
                            + "name the library.",
                    error);
        }
    }

    static Limiter open(Client client, String name, FairqProperties.OfLimiter limiter) {
        return naming("fairq.limiters[" + name + "]", () -> client.limiter(name, of(limiter)));
    }

    private static LimiterOptions of(FairqProperties.OfLimiter limiter) {
        LimiterOptions options = LimiterOptions.attach();
        options = given(options, limiter.limit(), LimiterOptions::limit);
        options = given(options, limiter.maxQueue(), (to, value) -> to.option("max_queue", value));
        options = given(options, limiter.maxWait(), Options::maxWait);
        options = given(options, limiter.lease(), LimiterOptions::lease);
        options = given(options, limiter.maxHold(), LimiterOptions::maxHold);
        options = given(options, limiter.idle(), LimiterOptions::idle);
        options = given(options, limiter.poll(), LimiterOptions::poll);
        return given(options, limiter.outage(), (to, value) -> to.option("outage", value));
    }

    private static LimiterOptions maxWait(LimiterOptions options, String wait) {
        return wait.equals(FOREVER) ? options.waitForever() : options.maxWait(duration("max-wait", wait));
    }

    /** As Spring Boot writes durations, so that all of them are written alike. */
    private static Duration duration(String key, String text) {
        try {
            return DurationStyle.detectAndParse(text);
        } catch (IllegalArgumentException error) {
            throw new InvalidException(key + ": \"" + text + "\" is no duration, such as 15s, and not forever", false, null);
        }
    }

    private static <O, V> O given(O options, V value, BiFunction<O, V, O> set) {
        return value == null ? options : set.apply(options, value);
    }

    private static <T> T naming(String where, Supplier<T> call) {
        try {
            return call.get();
        } catch (InvalidException error) {
            throw new FairqSetupException(
                    "What " + where + " says means nothing: " + error.getMessage(), "Correct it in the configuration.", error);
        }
    }
}

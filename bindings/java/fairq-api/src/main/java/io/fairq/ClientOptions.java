package io.fairq;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.Executor;

/** Options for opening a {@link Client}. Immutable: each method answers a new one. */
public final class ClientOptions {
    private static final ClientOptions DEFAULTS = new ClientOptions(Settings.NONE, null, Observer.NONE);

    private final Settings settings;
    private final Executor executor;
    private final Observer observer;

    private ClientOptions(Settings settings, Executor executor, Observer observer) {
        this.settings = settings;
        this.executor = executor;
        this.observer = observer;
    }

    /**
     * What holds where nothing else is said.
     *
     * @return options without any
     */
    public static ClientOptions defaults() {
        return DEFAULTS;
    }

    /**
     * How long an attempt to connect may take; 2 s by default.
     *
     * @param timeout more than zero
     * @return these options and this one
     */
    public ClientOptions connectTimeout(Duration timeout) {
        return new ClientOptions(settings.with("connect_timeout", timeout), executor, observer);
    }

    /**
     * How long the server may take to answer before the connection is given up; 2 s by default.
     *
     * @param timeout more than zero
     * @return these options and this one
     */
    public ClientOptions ioTimeout(Duration timeout) {
        return new ClientOptions(settings.with("io_timeout", timeout), executor, observer);
    }

    /**
     * Whether to listen for grants by Pub/Sub, as by default; without, only polling finds them.
     *
     * @param subscribe whether
     * @return these options and this one
     */
    public ClientOptions subscribe(boolean subscribe) {
        return option("subscribe", Boolean.toString(subscribe));
    }

    /**
     * How many requests and permits this process may have at once, 100,000 by default; more are refused with an
     * {@link OverloadedException}.
     *
     * @param tickets how many
     * @return these options and this one
     */
    public ClientOptions maxTickets(long tickets) {
        return option("max_tickets", Long.toString(tickets));
    }

    /**
     * What operators see of this instance; by default the host and the process id.
     *
     * @param description a short text
     * @return these options and this one
     */
    public ClientOptions description(String description) {
        return option("description", description);
    }

    /**
     * The user to log in as, unless the URL names one.
     *
     * @param username a name
     * @return these options and this one
     */
    public ClientOptions username(String username) {
        return option("username", username);
    }

    /**
     * The password, unless the URL or a file has it.
     *
     * @param password a password
     * @return these options and this one
     */
    public ClientOptions password(String password) {
        return option("password", password);
    }

    /**
     * A file that holds the password and nothing else. It is read for each connection, so that a changed one is taken over
     * without a restart.
     *
     * @param path where it is
     * @return these options and this one
     */
    public ClientOptions passwordFile(Path path) {
        return option("password_file", path.toString());
    }

    /**
     * As {@link #passwordFile}, for the login of sentinels.
     *
     * @param path where it is
     * @return these options and this one
     */
    public ClientOptions sentinelPasswordFile(Path path) {
        return option("sentinel_password_file", path.toString());
    }

    /**
     * With {@code rediss://}: the authorities to trust in the place of those that the system trusts. Like the other two it is
     * read for each connection.
     *
     * @param path a PEM file
     * @return these options and this one
     */
    public ClientOptions tlsCaFile(Path path) {
        return option("tls_ca_file", path.toString());
    }

    /**
     * With {@code rediss://}: this client's certificate, for servers that want one.
     *
     * @param path a PEM file
     * @return these options and this one
     */
    public ClientOptions tlsCertFile(Path path) {
        return option("tls_cert_file", path.toString());
    }

    /**
     * The private key of the certificate in {@link #tlsCertFile}.
     *
     * @param path a PEM file, not encrypted; it may be the same
     * @return these options and this one
     */
    public ClientOptions tlsKeyFile(Path path) {
        return option("tls_key_file", path.toString());
    }

    /**
     * An option by key and value, as in a configuration file; see {@link Option#all}. It is judged when the client is opened.
     *
     * @param key which
     * @param value how it is written there
     * @return these options and this one
     */
    public ClientOptions option(String key, String value) {
        return new ClientOptions(settings.with(key, value), executor, observer);
    }

    /**
     * Where futures are completed, and listeners called. By default that is a new virtual thread each time on JDK 21 and later,
     * and before {@link java.util.concurrent.ForkJoinPool#commonPool}. One that runs things in the calling thread runs them in
     * the thread that all of the client's waiters depend on: then they must not block. Should it reject a task, that runs as by
     * default.
     *
     * @param executor where
     * @return these options and this one
     */
    public ClientOptions executor(Executor executor) {
        return new ClientOptions(settings, Objects.requireNonNull(executor, "executor"), observer);
    }

    /**
     * Who is told what becomes of requests, for metrics.
     *
     * @param observer one for all limiters of the client
     * @return these options and this one
     */
    public ClientOptions observer(Observer observer) {
        return new ClientOptions(settings, executor, Objects.requireNonNull(observer, "observer"));
    }

    Settings settings() {
        return settings;
    }

    Executor executor() {
        return Tasks.orDefault(executor);
    }

    Observer observer() {
        return observer;
    }

    @Override
    public String toString() {
        return settings.toString();
    }
}

package io.fairq;

import static io.fairq.Library.fq;

import java.lang.ref.Reference;
import java.time.Duration;

/**
 * One instance of fairq: it has a connection or two and a thread or two, however many limiters and waiters it has. Any thread may
 * use it. Close it at the end: what a process holds that ends without that is free again after a lease only.
 */
public final class Client implements AutoCloseable {
    private final Core core;

    private Client(Core core) {
        this.core = core;
        Garbage.register(this, core);
    }

    /**
     * Opens a client with the default options; see {@link #open(String, ClientOptions)}.
     *
     * @param url where the store is
     * @return an open client
     */
    public static Client open(String url) {
        return open(url, ClientOptions.defaults());
    }

    /**
     * Opens a client. It connects with the first request. Does not block, but that the first one loads the shared library.
     *
     * @param url {@code memory:} for this process alone ({@code memory:NAME} is a world of its own); for a cluster of processes
     *     {@code redis://host} or {@code unix:///path/to/socket}, {@code redis-cluster://host:port,host:port} for a Redis
     *     Cluster, {@code redis-sentinel://host:port,host:port/SERVICE} for a master that sentinels know, and each of these
     *     with {@code rediss} in the place of {@code redis} by TLS
     * @param options options of the client
     * @return an open client
     * @throws InvalidException for what means nothing
     * @throws UnsatisfiedLinkError when the shared library cannot be loaded; it says why
     */
    public static Client open(String url, ClientOptions options) {
        byte[] place = Texts.utf8(url, "url");
        long handle = options.settings().in(config -> open(place, config));
        return new Client(new Core(handle, new Mailbox(options.executor(), options.observer())));
    }

    private static long open(byte[] url, long config) {
        try (Scratch scratch = Scratch.take()) {
            scratch.check(
                    fq().clientOpen(scratch.text(url), url.length, config, scratch.out(), scratch.error()));
            return scratch.outValue();
        }
    }

    /**
     * Opens a limiter that others have declared. Does not block.
     *
     * @param name 1 to 256 bytes of UTF-8
     * @return the limiter
     * @throws InvalidException for what means nothing
     * @throws ClosedException when the client is closed
     */
    public Limiter limiter(String name) {
        return limiter(name, LimiterOptions.attach());
    }

    /**
     * Opens a limiter. All that open one name on one client have the same. Does not block.
     *
     * @param name 1 to 256 bytes of UTF-8
     * @param options what this process declares of it
     * @return the limiter
     * @throws InvalidException for what means nothing
     * @throws ClosedException when the client is closed
     */
    public Limiter limiter(String name, LimiterOptions options) {
        byte[] text = Texts.utf8(name, "name");
        try {
            long handle = options.settings().in(config -> openLimiter(text, config));
            return new Limiter(this, name, handle, core.mailbox);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    private long openLimiter(byte[] name, long config) {
        try (Scratch scratch = Scratch.take()) {
            scratch.check(fq().limiterOpen(
                    core.handle, scratch.text(name), name.length, config, scratch.out(), scratch.error()));
            return scratch.outValue();
        }
    }

    /**
     * Connects now, and looks whether the server is fit: its version, the rights of the user. Blocks for at most
     * {@link ClientOptions#connectTimeout} and {@link ClientOptions#ioTimeout}.
     *
     * @throws UnavailableException when the store cannot be reached
     * @throws ConfigurationException when the client or the server is not set up right
     * @throws ServerException when the server answers what it should not
     * @throws ClosedException when the client is closed
     */
    public void check() {
        try {
            Blocking.call(core::check);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Closes the client at once: every waiter ends with {@link ClosedException}, what is held is taken back. Blocks for a few
     * seconds at most, and no interrupt ends that. May be called again.
     */
    @Override
    public void close() {
        close(Duration.ZERO);
    }

    /**
     * Closes the client: every waiter ends with {@link ClosedException}; what is held is kept until it is given back or the time is
     * over, then taken back; all its threads end. Blocks for that time and a few seconds at most, and no interrupt ends that. May be
     * called again, by any thread.
     *
     * @param drain how long what is held may be held still
     */
    public void close(Duration drain) {
        long millis = Millis.of(drain, "drain");
        try {
            Blocking.callLong(() -> core.close(millis));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * The version of the shared library. Does not block.
     *
     * @return such as {@code 0.1.0}
     * @throws UnsatisfiedLinkError when it cannot be loaded; it says why
     */
    public static String libraryVersion() {
        return fq().string(fq().version());
    }

    /**
     * By what the shared library is called. Does not block.
     *
     * @return {@code ffm} or {@code jna}
     * @throws UnsatisfiedLinkError when it cannot be loaded; it says why
     */
    public static String provider() {
        return Library.providerName();
    }

    /** What is left of a client that nobody has any more, to be cleaned up; so it does not know the client. */
    private static final class Core implements Runnable {
        private static final System.Logger LOG = System.getLogger("io.fairq");

        final long handle;
        final Mailbox mailbox;
        private volatile boolean closed;

        Core(long handle, Mailbox mailbox) {
            this.handle = handle;
            this.mailbox = mailbox;
        }

        Void check() {
            try (Scratch scratch = Scratch.take()) {
                scratch.check(fq().clientCheck(handle, scratch.error()));
            }
            return null;
        }

        Void close(long drainMs) {
            closed = true;
            try (Scratch scratch = Scratch.take()) {
                scratch.check(fq().clientClose(handle, drainMs, scratch.error()));
            }
            mailbox.end(); // whose thread has told all waiters of it by then, or tells them now
            return null;
        }

        /** The client is garbage. */
        @Override
        public void run() {
            if (!closed) {
                LOG.log(System.Logger.Level.WARNING, "a client was never closed; it is closed now, with the garbage");
            }
            mailbox.end();
            fq().clientFree(handle);
        }
    }
}

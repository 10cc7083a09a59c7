package io.fairq.testing;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** A server of the tests' own, on a free port and in a folder that goes with it. */
public final class RedisServer implements AutoCloseable {
    private static final Path REPOSITORY = Path.of("../../..").toAbsolutePath().normalize();

    private final Path binary;
    private final Path folder;
    private final int port;
    private Process process;

    private RedisServer(Path binary) throws IOException {
        this.binary = binary;
        this.folder = Files.createTempDirectory("fairq-redis");
        try (ServerSocket probe = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            this.port = probe.getLocalPort();
        }
        // A test that dies, and the one that all tests share, leave no server behind.
        Runtime.getRuntime().addShutdownHook(new Thread(this::end));
        restart();
    }

    public static RedisServer start() {
        Optional<Path> binary = find();
        if (binary.isEmpty()) {
            Checks.skip("there is no redis-server: install one, or let FAIRQ_REDIS70 name it");
        }
        try {
            return new RedisServer(binary.orElseThrow());
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static Optional<Path> find() {
        String named = System.getenv("FAIRQ_REDIS70");
        if (named != null && !named.isEmpty()) {
            return Optional.of(Path.of(named));
        }
        Stream<Path> installed = Stream.of((System.getenv("PATH") + ":/usr/bin:/usr/sbin").split(File.pathSeparator))
                .map(folder -> Path.of(folder, "redis-server"));
        return Stream.concat(installed, ofTheRepository()).filter(Files::isExecutable).findFirst();
    }

    private static Stream<Path> ofTheRepository() {
        File[] folders = REPOSITORY.resolve("target/servers").toFile().listFiles();
        return folders == null
                ? Stream.empty()
                : Stream.of(folders).sorted().map(folder -> folder.toPath().resolve("bin/redis-server"));
    }

    public String url() {
        return "redis://127.0.0.1:" + port;
    }

    public int port() {
        return port;
    }

    /** Starts it again, empty; returns when it answers. */
    public void restart() throws IOException {
        process = new ProcessBuilder(
                        binary.toString(), "--port", Integer.toString(port), "--bind", "127.0.0.1", "--save", "",
                        "--dir", folder.toString(), "--logfile", "log")
                .inheritIO()
                .start();
        Checks.eventually("the server answers", this::answers);
    }

    private boolean answers() {
        if (!process.isAlive()) {
            throw new AssertionError(binary + " did not start; its port may have been taken");
        }
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress("127.0.0.1", port));
            socket.getOutputStream().write("PING\r\n".getBytes());
            return socket.getInputStream().read() == '+';
        } catch (IOException notYet) {
            return false;
        }
    }

    /** {@code STOP}: it answers nobody, but is there; {@code CONT}: it goes on. */
    public void signal(String name) throws Exception {
        Process kill = new ProcessBuilder("kill", "-" + name, Long.toString(process.pid())).inheritIO().start();
        if (kill.waitFor() != 0) {
            throw new AssertionError("there is no such process");
        }
    }

    /** Ends it at once, with all it knows. */
    public void kill() throws InterruptedException {
        process.destroyForcibly();
        if (!process.waitFor(Checks.PATIENCE.toSeconds(), TimeUnit.SECONDS)) {
            throw new AssertionError("the server does not end");
        }
    }

    @Override
    public void close() {
        end();
    }

    private void end() {
        try {
            kill();
            try (Stream<Path> files = Files.list(folder)) {
                for (Path file : files.toList()) {
                    Files.delete(file);
                }
            }
            Files.delete(folder);
        } catch (InterruptedException | IOException gone) {
            // before
        }
    }
}

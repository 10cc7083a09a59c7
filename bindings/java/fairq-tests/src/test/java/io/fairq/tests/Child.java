package io.fairq.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fairq.testing.Checks;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** Another Java process, which says what it does line by line. */
final class Child implements AutoCloseable {
    private static final String END = "(the end)";

    private final Process process;
    private final BlockingQueue<String> lines = new LinkedBlockingQueue<>();
    private final PrintStream orders;

    Child(Class<?> main, String... arguments) throws IOException {
        this(Map.of(), Map.of("fairq.provider", System.getProperty("fairq.provider", "jna")), classPath(), main, arguments);
    }

    Child(
            Map<String, String> environment,
            Map<String, String> properties,
            String classPath,
            Class<?> main,
            String... arguments)
            throws IOException {
        List<String> command = new ArrayList<>(List.of(java(), "-Xmx64m", "-cp", classPath));
        if (Threads.haveVirtual()) {
            command.add("--enable-native-access=ALL-UNNAMED");
        }
        properties.forEach((key, value) -> command.add("-D" + key + "=" + value));
        command.add(main.getName());
        command.addAll(List.of(arguments));
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().putAll(environment);
        process = builder.start();
        orders = new PrintStream(process.getOutputStream(), true);
        Threads.start(this::listen);
    }

    private static String java() {
        return System.getProperty("java.home") + "/bin/java";
    }

    static String classPath() {
        return System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
    }

    private void listen() {
        try (BufferedReader out = process.inputReader()) {
            out.lines().forEach(lines::add);
        } catch (IOException | java.io.UncheckedIOException killed) {
            // then it says no more
        }
        lines.add(END);
    }

    long pid() {
        return process.pid();
    }

    String line() throws InterruptedException {
        String line = lines.poll(Checks.PATIENCE.toSeconds(), TimeUnit.SECONDS);
        assertTrue(line != null, "it says nothing");
        return line;
    }

    void says(String expected) throws InterruptedException {
        assertEquals(expected, line());
    }

    void order(String line) {
        orders.println(line);
    }

    void signal(String name) throws Exception {
        Process kill = new ProcessBuilder("kill", "-" + name, Long.toString(process.pid())).inheritIO().start();
        assertEquals(0, kill.waitFor());
    }

    /** Ends its input, and says what it still had to say. */
    List<String> finish() throws InterruptedException {
        orders.close();
        assertTrue(process.waitFor(Checks.PATIENCE.toSeconds(), TimeUnit.SECONDS), "it does not end");
        List<String> rest = new ArrayList<>();
        for (String line = line(); !line.equals(END); line = line()) {
            rest.add(line);
        }
        assertEquals(0, process.exitValue(), rest.toString());
        return rest;
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }
}

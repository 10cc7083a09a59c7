package io.fairq.spring;

import static org.assertj.core.api.Assertions.assertThat;

import io.fairq.Client;
import io.fairq.Limiter;
import io.fairq.LimiterOptions;
import io.fairq.Permit;
import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

/** Over a real server: an application shares its limit with others, and leaves nothing behind. */
class RedisTest {
    static class Work {
        @FairLimit(value = "rag:chat", label = "tenant #{#tenant}")
        public long fence(int tenant) {
            return CurrentPermit.find().orElseThrow().fence();
        }
    }

    @Test
    void anApplicationAmongOthers(@TempDir Path folder) throws Exception {
        Path binary = find().orElse(null);
        if (binary == null) {
            Checks.skip("there is no redis-server: install one, or let FAIRQ_REDIS70 name it");
        }
        int port = freePort();
        Process server = new ProcessBuilder(
                        binary.toString(), "--port", Integer.toString(port), "--bind", "127.0.0.1", "--save", "",
                        "--dir", folder.toString(), "--logfile", "log")
                .start();
        try {
            Checks.eventually("the server answers", () -> answers(port));
            together("redis://127.0.0.1:" + port);
        } finally {
            server.destroyForcibly().waitFor();
        }
    }

    private static void together(String url) throws Exception {
        try (Client other = Client.open(url)) {
            Limiter chat = other.limiter("rag:chat", LimiterOptions.ofLimit(1));
            Permit held = chat.acquire();
            new ApplicationContextRunner()
                    .withConfiguration(AutoConfigurations.of(
                            AopAutoConfiguration.class,
                            FairqAutoConfiguration.class,
                            io.fairq.spring.aop.FairLimitAutoConfiguration.class))
                    .withBean(Work.class)
                    .withPropertyValues("fairq.url=" + url, "fairq.drain=60s")
                    .run(context -> {
                        var call = new java.util.concurrent.FutureTask<>(() -> context.getBean(Work.class).fence(7));
                        new Thread(call).start();
                        Checks.inLine(chat, 1);
                        held.close();
                        assertThat(Checks.get(call)).isGreaterThan(held.fence());
                        assertThat(context.getBean(Limiters.class).get("rag:chat").acquire().isValid()).isTrue();
                        Checks.used(chat, 1);
                        context.getBean(Client.class).close(); // with what is held
                    });
            Checks.idle(chat);
            assertThat(chat.status().instances()).as("the application has left").isOne();
        }
    }

    private static boolean answers(int port) {
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress("127.0.0.1", port));
            socket.getOutputStream().write("PING\r\n".getBytes());
            return socket.getInputStream().read() == '+';
        } catch (IOException notYet) {
            return false;
        }
    }

    private static int freePort() throws IOException {
        try (ServerSocket probe = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return probe.getLocalPort();
        }
    }

    private static Optional<Path> find() {
        String named = System.getenv("FAIRQ_REDIS70");
        if (named != null && !named.isEmpty()) {
            return Optional.of(Path.of(named));
        }
        File[] own = Path.of("../../../target/servers").toFile().listFiles();
        Stream<Path> repository = own == null
                ? Stream.empty()
                : Stream.of(own).sorted().map(folder -> folder.toPath().resolve("bin/redis-server"));
        Stream<Path> installed = Stream.of((System.getenv("PATH") + ":/usr/bin:/usr/sbin").split(File.pathSeparator))
                .map(folder -> Path.of(folder, "redis-server"));
        return Stream.concat(installed, repository).filter(Files::isExecutable).findFirst();
    }
}

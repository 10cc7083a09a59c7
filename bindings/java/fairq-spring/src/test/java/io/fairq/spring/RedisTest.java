package io.fairq.spring;

import static org.assertj.core.api.Assertions.assertThat;

import io.fairq.Client;
import io.fairq.Limiter;
import io.fairq.LimiterOptions;
import io.fairq.Permit;
import io.fairq.testing.Checks;
import io.fairq.testing.RedisServer;
import org.junit.jupiter.api.Test;
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
    void anApplicationAmongOthers() throws Exception {
        try (RedisServer server = RedisServer.start()) {
            together(server.url());
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
}

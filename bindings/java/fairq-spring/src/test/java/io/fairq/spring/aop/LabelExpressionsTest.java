package io.fairq.spring.aop;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;
import org.springframework.context.support.StaticApplicationContext;

/** Labels of requests. */
class LabelExpressionsTest {
    static class Work {
        public void ask(String tenant, int number) {}
    }

    private static String label(String written, Object... arguments) throws Exception {
        StaticApplicationContext beans = new StaticApplicationContext();
        beans.registerBean("region", String.class, () -> "eu");
        LabelExpressions labels = new LabelExpressions(beans);
        Method method = Work.class.getMethod("ask", String.class, int.class);
        return labels.evaluate(labels.parse(written), new Work(), method, arguments);
    }

    @Test
    void argumentsAndBeans() throws Exception {
        assertThat(label("plain", "t", 1)).isEqualTo("plain");
        assertThat(label("tenant #{#tenant}, #{#a1 + 1}, #{@region}", "seven", 1)).isEqualTo("tenant seven, 2, eu");
        assertThat(label("#{#tenant}", null, 1)).isEmpty();
    }

    /** What clients send may be anything. */
    @Test
    void theyFit() throws Exception {
        String cut = label("#{#tenant}", "ü".repeat(300), 1);
        assertThat(cut).isEqualTo("ü".repeat(128));
        assertThat(label("x#{#tenant}", "ü".repeat(300), 1).getBytes(StandardCharsets.UTF_8)).hasSize(255);
        assertThat(label("#{#tenant}", "a\ud83d", 1)).isEqualTo("a?");
    }
}

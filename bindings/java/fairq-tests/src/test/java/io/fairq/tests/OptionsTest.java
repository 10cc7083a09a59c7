package io.fairq.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fairq.Client;
import io.fairq.ClientOptions;
import io.fairq.FairqException;
import io.fairq.InvalidException;
import io.fairq.LimiterChange;
import io.fairq.LimiterOptions;
import io.fairq.Option;
import io.fairq.testing.Checks;
import java.lang.reflect.Method;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** Each option of the library has a method, by its name. */
class OptionsTest {
    private static final Map<String, String> OTHER_NAMES = Map.of("outage", "failInOutage");

    private static Set<String> methods(Class<?> type) {
        return Arrays.stream(type.getMethods()).map(Method::getName).collect(Collectors.toSet());
    }

    private static String methodOf(String key) {
        StringBuilder name = new StringBuilder();
        for (String word : key.split("_")) {
            name.append(name.length() == 0 ? word : Character.toUpperCase(word.charAt(0)) + word.substring(1));
        }
        return OTHER_NAMES.getOrDefault(key, name.toString());
    }

    @Test
    void eachHasAMethod() {
        Map<Option.Scope, Class<?>> types = Map.of(
                Option.Scope.CLIENT, ClientOptions.class,
                Option.Scope.LIMITER, LimiterOptions.class,
                Option.Scope.CHANGE, LimiterChange.class);
        assertTrue(Option.all().size() >= 19);
        for (Option option : Option.all()) {
            String method = methodOf(option.key());
            assertTrue(methods(types.get(option.scope())).contains(method), option.scope() + " has no " + method);
            assertTrue(!option.doc().isEmpty() && option.defaultValue() != null, option.toString());
        }
    }

    @Test
    void aLoginAndCertificatesGoWithAServer() {
        Path file = Path.of("/nowhere/file");
        ClientOptions none = ClientOptions.defaults();
        Map<String, ClientOptions> each = Map.of(
                "username", none.username("app"),
                "password", none.password("s3cret"),
                "password_file", none.passwordFile(file),
                "sentinel_password_file", none.sentinelPasswordFile(file),
                "tls_ca_file", none.tlsCaFile(file),
                "tls_cert_file", none.tlsCertFile(file),
                "tls_key_file", none.tlsKeyFile(file));
        each.forEach((key, options) -> {
            InvalidException refused =
                    assertThrows(InvalidException.class, () -> Client.open("memory:options", options));
            assertTrue(refused.getMessage().contains(key), refused.getMessage());
            assertFalse((options + refused.getMessage()).contains("s3cret"), options.toString());
        });
        ClientOptions all = none.username("app").passwordFile(file).tlsCaFile(file).tlsCertFile(file).tlsKeyFile(file);
        try (Client client = Client.open("rediss-sentinel://h:1,i:2/main", all)) {
            assertThrows(FairqException.class, client::check);
        }
    }

    @Test
    void allAreTaken() {
        ClientOptions options = ClientOptions.defaults()
                .connectTimeout(Checks.PATIENCE)
                .ioTimeout(Checks.PATIENCE)
                .subscribe(false)
                .description("a test");
        LimiterOptions declared = LimiterOptions.attach()
                .limit(0)
                .maxQueue(1)
                .maxWait(Checks.PATIENCE)
                .lease(Checks.PATIENCE)
                .maxHold(Checks.PATIENCE)
                .idle(Checks.PATIENCE.multipliedBy(3))
                .poll(Checks.PATIENCE)
                .waitInOutage()
                .failInOutage()
                .localInOutage(3);
        try (Client client = Client.open("memory:options", options)) {
            assertEquals("x", client.limiter("x", declared).name());
        }
    }
}

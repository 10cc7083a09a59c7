package io.fairq;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fairq.spi.NativeLibrary;
import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** What this package knows of the ABI, against the table that all languages are checked against, and the header. */
class AbiTest {
    private static final Path REPOSITORY = Path.of("../../..");
    private static final Map<String, Class<?>> STRUCTS = Map.of(
            "fq_option", Abi.Option.class,
            "fq_request", Abi.Asked.class,
            "fq_limiter_info", Abi.Info.class,
            "fq_position", Abi.Place.class,
            "fq_event", Abi.Event.class);

    private static Map<String, String> table(String kind) throws IOException {
        return Files.readAllLines(REPOSITORY.resolve("tests/abi/layout.txt")).stream()
                .map(line -> line.split(" "))
                .filter(words -> words[0].equals(kind))
                .collect(Collectors.toMap(words -> words[1], words -> words[2]));
    }

    private static Map<String, Integer> numbers(Class<?> struct) throws IllegalAccessException {
        Map<String, Integer> numbers = new TreeMap<>();
        for (Field field : struct.getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers()) && !field.isSynthetic()) {
                numbers.put(field.getName(), field.getInt(null));
            }
        }
        return numbers;
    }

    @Test
    void sizesAndOffsets() throws Exception {
        Map<String, String> sizes = table("struct");
        Map<String, String> offsets = table("field");
        assertEquals(STRUCTS.keySet(), sizes.keySet());
        for (Map.Entry<String, Class<?>> struct : STRUCTS.entrySet()) {
            Map<String, Integer> known = numbers(struct.getValue());
            assertEquals(Integer.parseInt(sizes.get(struct.getKey())), known.remove("SIZE"), struct.getKey());
            Map<String, Integer> all = new TreeMap<>();
            offsets.forEach((field, offset) -> {
                String[] names = field.split("\\.");
                if (names[0].equals(struct.getKey()) && !names[1].equals("size")) {
                    all.put(names[1].toUpperCase(Locale.ROOT), Integer.parseInt(offset));
                }
            });
            assertEquals(all, known, struct.getKey());
        }
        assertEquals("0", offsets.get("fq_request.size"));
        assertEquals("0", offsets.get("fq_limiter_info.size"));
    }

    @Test
    void constants() throws Exception {
        Map<String, String> constants = table("const");
        Map<String, String> known = new TreeMap<>();
        for (Field field : Abi.class.getDeclaredFields()) {
            if (!field.isSynthetic()) {
                known.put("FQ_" + field.getName(), String.valueOf(field.get(null)));
            }
        }
        Arrays.stream(StatusCode.values()).forEach(code -> known.put("FQ_" + code, "" + code.ordinal()));
        Arrays.stream(Option.Scope.values()).forEach(scope -> known.put("FQ_SCOPE_" + scope, "" + scope.ordinal()));
        Arrays.stream(PermitState.values()).forEach(state -> known.put("FQ_PERMIT_STATE_" + state, "" + state.ordinal()));
        assertEquals(new TreeMap<>(constants), known);
    }

    @Test
    void functions() throws Exception {
        Set<String> exported = new TreeSet<>(Files.readAllLines(REPOSITORY.resolve("tests/abi/symbols.txt")));
        for (Method method : NativeLibrary.class.getMethods()) {
            String name = "fq_" + method.getName().replaceAll("([A-Z])", "_$1").toLowerCase(Locale.ROOT);
            assertTrue(exported.contains(name) || List.of("fq_address", "fq_string", "fq_memory").contains(name), name);
        }
    }

    @Test
    void version() throws Exception {
        String header = Files.readString(REPOSITORY.resolve("include/fairq.h"));
        String[] parts = Library.VERSION.split("\\.");
        assertTrue(header.contains("#define FQ_VERSION_MAJOR " + parts[0]));
        assertTrue(header.contains("#define FQ_VERSION_MINOR " + parts[1]));
        assertTrue(header.contains("#define FQ_VERSION_PATCH " + parts[2]));
        assertTrue(Files.readString(Path.of("pom.xml")).contains("<version>" + Library.VERSION + "</version>"));
    }

    @Test
    void eachStatusHasItsException() {
        for (StatusCode code : StatusCode.values()) {
            FairqException error = new Failure(code, "words", true, null).exception();
            assertEquals(code, error.status());
            assertEquals("words", error.getMessage());
            assertTrue(error.retryable() && error.retryAfter().isEmpty());
            String name = code.name().replace("_", "").toLowerCase(Locale.ROOT) + "exception";
            boolean named = error.getClass().getSimpleName().toLowerCase(Locale.ROOT).equals(name);
            assertTrue(named || error instanceof InternalException, code + ": " + error.getClass());
        }
        assertEquals(StatusCode.INTERNAL, StatusCode.of(999));
        assertEquals(StatusCode.INTERNAL, StatusCode.of(-1));
    }
}

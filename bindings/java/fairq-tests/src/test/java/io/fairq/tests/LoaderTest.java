package io.fairq.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Which library is loaded, and by what. */
class LoaderTest {
    private static final String FOUND = " 0.1.0 Client";

    @TempDir
    Path folder;

    private List<String> load(Map<String, String> properties, String classPath) throws Exception {
        return load(Map.of(), properties, classPath);
    }

    private List<String> load(Map<String, String> environment, Map<String, String> properties, String classPath)
            throws Exception {
        try (Child child = new Child(environment, properties, classPath, Loader.class)) {
            List<String> lines = child.finish().stream()
                    .filter(line -> line.startsWith("refused: ") || line.endsWith(FOUND)) // and not what the JVM says
                    .collect(Collectors.toList());
            assertEquals(lines.subList(0, lines.size() / 2), lines.subList(lines.size() / 2, lines.size()), "each time the same");
            return lines;
        }
    }

    private String loadOne(Map<String, String> properties) throws Exception {
        return load(properties, Child.classPath()).get(0);
    }

    private static String without(String words) {
        return Stream.of(Child.classPath().split(File.pathSeparator))
                .filter(path -> !path.contains(words))
                .collect(Collectors.joining(File.pathSeparator));
    }

    @Test
    void theBetterOneOfTwo() throws Exception {
        assertEquals((Runtime.version().feature() >= 22 ? "ffm" : "jna") + FOUND, loadOne(Map.of()));
        assertEquals("jna" + FOUND, loadOne(Map.of("fairq.provider", "jna")));
        assertEquals("jna" + FOUND, load(Map.of(), without("fairq-ffm")).get(0));
    }

    @Test
    void none() throws Exception {
        String error = load(Map.of("fairq.provider", "jni"), Child.classPath()).get(0);
        assertTrue(error.startsWith("refused: ") && error.contains("no provider named jni"), error);
    }

    @Test
    void theNamedLibrary() throws Exception {
        String error = loadOne(Map.of("fairq.library", folder.resolve("none.so").toString()));
        assertTrue(error.startsWith("refused: ") && error.contains("none.so, which is no file"), error);
        Path text = Files.writeString(folder.resolve("text.so"), "no library");
        error = loadOne(Map.of("fairq.library", text.toString()));
        assertTrue(error.startsWith("refused: ") && error.contains("text.so"), error);
    }

    @Test
    void theOneThatTheEnvironmentNames() throws Exception {
        Map<String, String> none = Map.of("FAIRQ_LIBRARY", folder.resolve("none.so").toString());
        String error = load(none, Map.of(), Child.classPath()).get(0);
        assertTrue(error.contains("the environment variable FAIRQ_LIBRARY names ") && error.contains("none.so"), error);
        Path text = Files.writeString(folder.resolve("text.so"), "no library");
        error = load(none, Map.of("fairq.library", text.toString()), Child.classPath()).get(0);
        assertTrue(error.contains("text.so"), "the property is before it: " + error);
        assertTrue(load(Map.of("FAIRQ_LIBRARY", ""), Map.of(), Child.classPath()).get(0).endsWith(FOUND), "set to nothing");
        Map<String, String> copy = Map.of("FAIRQ_LIBRARY", copyOfTheBundledOne().toString());
        assertTrue(load(copy, Map.of(), without("fairq-natives")).get(0).endsWith(FOUND), "there is no other");
    }

    private Path copyOfTheBundledOne() throws IOException {
        String machine = System.getProperty("os.arch").replace("amd64", "x86_64");
        String resource = "/META-INF/natives/linux-" + machine + "/" + System.mapLibraryName("fairq");
        Path copy = folder.resolve("copy.so");
        try (InputStream bundled = LoaderTest.class.getResourceAsStream(resource)) {
            Files.copy(bundled, copy);
        }
        return copy;
    }

    @Test
    void theOneOfTheSystemIsBeforeTheBundledOne() throws Exception {
        Files.writeString(folder.resolve(System.mapLibraryName("fairq")), "no library");
        String error = loadOne(Map.of("java.library.path", folder.toString()));
        assertTrue(error.startsWith("refused: ") && error.contains(folder.toString()), error);
    }

    @Test
    void theBundledOneLeavesNothingBehind() throws Exception {
        assertTrue(loadOne(Map.of("java.io.tmpdir", folder.toString())).endsWith(FOUND));
        try (Stream<Path> left = Files.list(folder)) {
            assertEquals(List.of(), left.filter(path -> path.getFileName().toString().startsWith("fairq")).toList());
        }
        String error = load(Map.of(), without("fairq-natives")).get(0);
        assertTrue(error.startsWith("refused: ") && error.contains("fairq-natives"), error);
    }

    @Test
    void aLibraryThatLacksFunctions() throws Exception {
        Path other = Path.of("/lib/x86_64-linux-gnu/libz.so.1");
        org.junit.jupiter.api.Assumptions.assumeTrue(Files.exists(other), "there is no other library at hand");
        String error = loadOne(Map.of("fairq.library", other.toString()));
        assertTrue(error.startsWith("refused: ") && error.contains("fq_"), error);
    }
}

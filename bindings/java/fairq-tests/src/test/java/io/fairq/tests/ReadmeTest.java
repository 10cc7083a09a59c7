package io.fairq.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The code of the README compiles and runs. */
class ReadmeTest {
    private static final Pattern BLOCK = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL);
    private static final String AROUND = """
            import io.fairq.*;
            import java.time.Duration;
            import java.util.concurrent.CompletableFuture;
            import java.util.concurrent.Flow;

            public class %s {
                public static void main(String[] args) throws Exception {
                    try (Client client = Client.open("memory:")) {
                        Limiter chat = client.limiter("rag:chat", LimiterOptions.ofLimit(4));
                        chat.acquire().close();
            %s
                    }
                }
            }
            """;

    @TempDir
    Path folder;

    /** Programs as they are, and what is none of its own in a program around it. */
    private List<String> write() throws Exception {
        List<String> names = new ArrayList<>();
        Matcher blocks = BLOCK.matcher(Files.readString(Path.of("../README.md")));
        while (blocks.find()) {
            String code = blocks.group(1);
            Matcher program = Pattern.compile("public class (\\w+)").matcher(code);
            String name = program.find() ? program.group(1) : "Block" + names.size();
            Files.writeString(folder.resolve(name + ".java"), code.contains("class ") ? code : AROUND.formatted(name, code));
            names.add(name);
        }
        return names;
    }

    private void compile(List<String> names) {
        List<String> options = new ArrayList<>(List.of("-Xlint:all,-classfile,-try", "-Werror", "-proc:none", "-cp",
                Child.classPath(), "-d", folder.toString()));
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        StringWriter words = new StringWriter();
        try (var files = compiler.getStandardFileManager(null, null, null)) {
            var sources = files.getJavaFileObjects(
                    names.stream().map(name -> folder.resolve(name + ".java")).toArray(Path[]::new));
            assertTrue(compiler.getTask(words, files, null, options, null, sources).call(), words.toString());
        } catch (java.io.IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
    }

    private String run(String name) throws Exception {
        Process program = new ProcessBuilder(
                        System.getProperty("java.home") + "/bin/java", "-cp",
                        folder + File.pathSeparator + Child.classPath(), name)
                .redirectErrorStream(true)
                .start();
        String said = new String(program.getInputStream().readAllBytes());
        assertEquals(0, program.waitFor(), said);
        return said;
    }

    @Test
    void itsCode() throws Exception {
        List<String> names = write();
        assertEquals(3, names.size());
        compile(names);
        assertTrue(run("Chat").contains("answered under Permit[limiter=rag:chat"));
        assertTrue(run("Block1").contains("nobody was in the way"));
        assertTrue(run("Block2").contains("0 of 4, 0 wait"));
    }
}

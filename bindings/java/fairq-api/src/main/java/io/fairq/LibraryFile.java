package io.fairq;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;

/**
 * Where the shared library is: what the system property {@code fairq.library} names, or the environment variable
 * {@code FAIRQ_LIBRARY}, else in {@code java.library.path}, else the one of the jar {@code fairq-natives}, in a folder of its own
 * that goes as soon as the library is loaded.
 */
record LibraryFile(Path path, boolean isExtracted) implements AutoCloseable {
    private static final String PROPERTY = "fairq.library";
    private static final String VARIABLE = "FAIRQ_LIBRARY";
    private static final System.Logger LOG = System.getLogger("io.fairq");

    static LibraryFile find() {
        String byProperty = System.getProperty(PROPERTY);
        if (byProperty != null) {
            return named(byProperty, "the system property " + PROPERTY);
        }
        String byVariable = System.getenv(VARIABLE);
        if (byVariable != null && !byVariable.isEmpty()) {
            return named(byVariable, "the environment variable " + VARIABLE);
        }
        String file = System.mapLibraryName("fairq");
        for (String folder : System.getProperty("java.library.path", "").split(File.pathSeparator)) {
            Path path = Path.of(folder, file).toAbsolutePath();
            if (!folder.isEmpty() && Files.isRegularFile(path)) {
                return new LibraryFile(path, false);
            }
        }
        return bundled("META-INF/natives/" + platform() + "/" + file);
    }

    private static LibraryFile named(String name, String by) {
        Path path = Path.of(name).toAbsolutePath();
        if (!Files.isRegularFile(path)) {
            throw new UnsatisfiedLinkError(by + " names " + path + ", which is no file");
        }
        return new LibraryFile(path, false);
    }

    private static LibraryFile bundled(String resource) {
        try (InputStream bundled = LibraryFile.class.getClassLoader().getResourceAsStream(resource)) {
            if (bundled == null) {
                throw new UnsatisfiedLinkError("there is no " + resource + " in the class path: add a fairq-natives that is "
                        + "made for this platform, or let the system property " + PROPERTY + " or the environment variable "
                        + VARIABLE + " name the library");
            }
            Path folder = Files.createTempDirectory("fairq"); // which only this user can read or write
            Path path = folder.resolve(Path.of(resource).getFileName().toString());
            Files.copy(bundled, path);
            return new LibraryFile(path, true);
        } catch (IOException error) {
            throw new UnsatisfiedLinkError("the library cannot be extracted to java.io.tmpdir: " + error);
        }
    }

    /** Such as {@code linux-x86_64}. */
    static String platform() {
        String system = System.getProperty("os.name").toLowerCase(Locale.ROOT);
        String machine = System.getProperty("os.arch");
        String name = system.startsWith("mac") ? "macos" : system.startsWith("windows") ? "windows" : system;
        return name + "-" + (machine.equals("amd64") ? "x86_64" : machine.equals("arm64") ? "aarch64" : machine);
    }

    /** What is loaded needs its file no more. */
    @Override
    public void close() {
        if (!isExtracted) {
            return;
        }
        try {
            Files.delete(path);
            Files.delete(path.getParent());
        } catch (IOException inUse) { // where a file that is in use cannot go
            LOG.log(System.Logger.Level.DEBUG, "{0} is deleted at exit", path);
            path.getParent().toFile().deleteOnExit();
            path.toFile().deleteOnExit();
        }
    }
}

package io.fairq;

import io.fairq.spi.NativeLibrary;
import io.fairq.spi.NativeProvider;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;

/** Chooses a way to call C, and loads the shared library by it. */
final class Library {
    /** The version that this package is made for; a test compares it with the header's. */
    static final String VERSION = "0.1.0";

    private static final String PROVIDER = "fairq.provider";

    private Library() {}

    /** The functions of the library; loads it when it is first needed. */
    static NativeLibrary fq() {
        if (Loaded.LIBRARY == null) {
            throw new UnsatisfiedLinkError(Loaded.FAILURE);
        }
        return Loaded.LIBRARY;
    }

    /** The name of the provider that calls the library. */
    static String providerName() {
        fq();
        return Loaded.PROVIDER;
    }

    /** Either a library, or why there is none: else only the first who asks would learn why. */
    private static final class Loaded {
        static final NativeLibrary LIBRARY;
        static final String PROVIDER;
        static final String FAILURE;

        static {
            NativeLibrary library = null;
            String provider = null;
            String failure = null;
            try (LibraryFile file = LibraryFile.find()) {
                List<String> refusals = new ArrayList<>();
                for (NativeProvider candidate : providers(refusals)) {
                    library = load(candidate, file, refusals);
                    if (library != null) {
                        provider = candidate.name();
                        break;
                    }
                }
                failure = library == null ? "fairq cannot be loaded: " + String.join("; ", refusals) : null;
            } catch (UnsatisfiedLinkError error) {
                failure = error.getMessage();
            }
            LIBRARY = library;
            PROVIDER = provider;
            FAILURE = failure;
        }
    }

    private static NativeLibrary load(NativeProvider provider, LibraryFile file, List<String> refusals) {
        try {
            NativeLibrary library = provider.load(file.path().toString());
            checkVersion(library.string(library.version()), file);
            return library;
        } catch (RuntimeException | LinkageError refusal) {
            Throwable why = refusal instanceof ExceptionInInitializerError ? refusal.getCause() : refusal;
            refusals.add(provider.name() + ": " + why.getMessage());
            return null;
        }
    }

    private static void checkVersion(String version, LibraryFile file) {
        // While the major version is 0, a minor one may change what this package relies on.
        if (!majorAndMinor(version).equals(majorAndMinor(VERSION))) {
            throw new UnsatisfiedLinkError(file.path() + " is fairq " + version + ", and this package is made for "
                    + VERSION);
        }
    }

    private static String majorAndMinor(String version) {
        return version.substring(0, version.lastIndexOf('.'));
    }

    /** Those that work on this JDK, the preferred one first. */
    private static List<NativeProvider> providers(List<String> refusals) {
        String wanted = System.getProperty(PROVIDER);
        List<NativeProvider> found = new ArrayList<>();
        Iterator<NativeProvider> services =
                ServiceLoader.load(NativeProvider.class, Library.class.getClassLoader()).iterator();
        while (true) {
            try {
                if (!services.hasNext()) {
                    break;
                }
                NativeProvider provider = services.next();
                if (wanted == null || wanted.equals(provider.name())) {
                    found.add(provider);
                }
            } catch (ServiceConfigurationError | LinkageError tooNew) {
                refusals.add(tooNew.getMessage()); // made for a later JDK; the next may do
            }
        }
        if (found.isEmpty()) {
            refusals.add("there is no provider" + (wanted == null ? "" : " named " + wanted)
                    + "; add fairq-jna, or on JDK 22 and later fairq-ffm, to the class path");
        }
        found.sort(Comparator.comparingInt(NativeProvider::preference).reversed());
        return found;
    }
}

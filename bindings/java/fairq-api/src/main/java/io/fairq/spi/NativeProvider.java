package io.fairq.spi;

/** A way to call C, found by {@link java.util.ServiceLoader}. */
public interface NativeProvider {
    /**
     * What it is called in messages, and in the system property {@code fairq.provider}.
     *
     * @return a short word, such as {@code jna}
     */
    String name();

    /**
     * Which provider is tried first: that with the greatest number.
     *
     * @return any number
     */
    int preference();

    /**
     * Loads the library and finds all its functions.
     *
     * @param path the absolute path of the shared library
     * @return its functions; they live as long as the process
     * @throws UnsatisfiedLinkError when there is no library there, or it lacks a function
     * @throws UnsupportedOperationException when this way to call C does not work here; another one is tried
     */
    NativeLibrary load(String path);
}

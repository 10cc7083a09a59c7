package io.fairq.ffm;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;

/** The functions of the loaded library, as method handles. */
final class Symbols {
    private static final Linker LINKER = Linker.nativeLinker();
    /** Set before {@link FfmLibrary}, whose constants need it, is initialized. */
    private static volatile SymbolLookup library;

    private Symbols() {}

    static void load(String path) {
        library = SymbolLookup.libraryLookup(Path.of(path), Arena.global());
    }

    private static MemorySegment find(String name) {
        return library.find(name).orElseThrow(() -> new UnsatisfiedLinkError("there is no " + name));
    }

    /** A function that may block, or takes a while: a garbage collection need not wait for its end. */
    static MethodHandle any(String name, FunctionDescriptor type) {
        return LINKER.downcallHandle(find(name), type);
    }

    /** A function that only looks something up. */
    static MethodHandle quick(String name, FunctionDescriptor type) {
        return LINKER.downcallHandle(find(name), type, Linker.Option.critical(false));
    }
}

package io.fairq.ffm;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.Collections;

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

    /** A function of handles and pointers that answers a status. */
    static MethodHandle status(String name, int arguments) {
        return LINKER.downcallHandle(find(name), FunctionDescriptor.of(JAVA_INT, longs(arguments)));
    }

    /** A function of handles and pointers that answers one. */
    static MethodHandle number(String name, int arguments) {
        return LINKER.downcallHandle(find(name), FunctionDescriptor.of(JAVA_LONG, longs(arguments)));
    }

    /** A function of handles and pointers that answers nothing. */
    static MethodHandle nothing(String name, int arguments) {
        return LINKER.downcallHandle(find(name), FunctionDescriptor.ofVoid(longs(arguments)));
    }

    private static MemoryLayout[] longs(int count) {
        return Collections.nCopies(count, JAVA_LONG).toArray(MemoryLayout[]::new);
    }

    /** A function that only looks something up, and is over before a garbage collection would have missed the thread. */
    static MethodHandle look(String name, MemoryLayout result, MemoryLayout... arguments) {
        FunctionDescriptor type = FunctionDescriptor.of(result, arguments);
        return LINKER.downcallHandle(find(name), type, Linker.Option.critical(false));
    }
}

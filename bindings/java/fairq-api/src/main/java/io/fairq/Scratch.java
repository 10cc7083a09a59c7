package io.fairq;

import static io.fairq.Library.fq;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * Memory for the arguments and answers of one call. There are about as many as threads that were in the library at one moment;
 * they are used again, and not each thread's own, of which there may be very many.
 */
final class Scratch implements AutoCloseable {
    static final int EVENTS = 16;

    private static final int OUT = 0;
    private static final int ERROR = 8;
    private static final int COUNT = 16;
    private static final int STRUCT = 24;
    private static final int EVENTS_AT = STRUCT + Abi.Info.SIZE;
    private static final int SIZE = EVENTS_AT + EVENTS * Abi.Event.SIZE;
    private static final int FIRST_TEXT = 320;

    private static final int SHELVES = 32;
    private static final AtomicReferenceArray<Scratch> SHELF = new AtomicReferenceArray<>(SHELVES);
    private static final ConcurrentLinkedDeque<Scratch> STORE = new ConcurrentLinkedDeque<>();

    private final ByteBuffer memory = direct(SIZE);
    private final long address = fq().address(memory);
    private ByteBuffer text = direct(FIRST_TEXT);
    private long textAddress = fq().address(text);

    private Scratch() {}

    static ByteBuffer direct(int size) {
        return ByteBuffer.allocateDirect(size).order(ByteOrder.nativeOrder());
    }

    /** One that nobody else has until it is closed. */
    static Scratch take() {
        Scratch scratch = SHELF.getAndSet(shelf(), null);
        if (scratch == null) {
            scratch = STORE.pollFirst();
        }
        return scratch != null ? scratch : new Scratch();
    }

    @Override
    public void close() {
        if (!SHELF.compareAndSet(shelf(), null, this)) {
            STORE.addFirst(this);
        }
    }

    private static int shelf() {
        return System.identityHashCode(Thread.currentThread()) & (SHELVES - 1);
    }

    /** Where a handle is put. */
    long out() {
        return address + OUT;
    }

    /** The handle that was put there. */
    long outValue() {
        return memory.getLong(OUT);
    }

    /** Where an error is put. */
    long error() {
        return address + ERROR;
    }

    /** What was put there: the library's answer to a status. */
    Failure failure(int status) {
        return Failure.take(status, memory.getLong(ERROR));
    }

    /** Throws what a status says. */
    void check(int status) {
        if (status != 0) {
            throw failure(status).exception();
        }
    }

    /** Where a number is put. */
    long count() {
        return address + COUNT;
    }

    /** The number that was put there. */
    long countValue() {
        return memory.getLong(COUNT);
    }

    /** Where a struct is. */
    long struct() {
        return address + STRUCT;
    }

    int int32(int field) {
        return memory.getInt(STRUCT + field);
    }

    long int64(int field) {
        return memory.getLong(STRUCT + field);
    }

    void int32(int field, int value) {
        memory.putInt(STRUCT + field, value);
    }

    void int64(int field, long value) {
        memory.putLong(STRUCT + field, value);
    }

    /** Room for {@link #EVENTS} events. */
    Events events() {
        return new Events(memory, EVENTS_AT, address + EVENTS_AT);
    }

    /** Where these bytes are, until the next text. */
    long text(byte[] bytes) {
        if (bytes.length > text.capacity()) {
            text = direct(bytes.length);
            textAddress = fq().address(text);
        }
        text.put(0, bytes);
        return textAddress;
    }
}

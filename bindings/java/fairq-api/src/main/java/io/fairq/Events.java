package io.fairq;

import java.nio.ByteBuffer;

/** An array of {@code fq_event}. */
record Events(ByteBuffer memory, int offset, long address) {
    long token(int at) {
        return memory.getLong(field(at, Abi.Event.TOKEN));
    }

    int kind(int at) {
        return memory.getInt(field(at, Abi.Event.KIND));
    }

    int status(int at) {
        return memory.getInt(field(at, Abi.Event.STATUS));
    }

    long permit(int at) {
        return memory.getLong(field(at, Abi.Event.PERMIT));
    }

    long error(int at) {
        return memory.getLong(field(at, Abi.Event.ERROR));
    }

    Position position(int at) {
        long position = memory.getLong(field(at, Abi.Event.POSITION));
        return new Position(position, Millis.known(memory.getLong(field(at, Abi.Event.ESTIMATE_MS))));
    }

    private int field(int at, int field) {
        return offset + at * Abi.Event.SIZE + field;
    }
}

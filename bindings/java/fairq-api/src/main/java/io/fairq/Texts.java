package io.fairq;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;

/** Strings of callers, as the library takes them. */
final class Texts {
    private Texts() {}

    /** UTF-8; what cannot be written in it (half a surrogate pair) is refused, and not replaced in silence. */
    static byte[] utf8(String text, String what) {
        try {
            ByteBuffer encoded = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(text));
            byte[] bytes = new byte[encoded.remaining()];
            encoded.get(bytes);
            return bytes;
        } catch (CharacterCodingException unpaired) {
            throw Failure.invalid(what + ": it is no text that can be written in UTF-8");
        }
    }
}

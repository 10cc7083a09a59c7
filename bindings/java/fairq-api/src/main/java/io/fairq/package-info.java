/**
 * How many long-running requests run at once over a whole cluster, with a strict first-come-first-served line in front.
 *
 * <pre>{@code
 * try (Client client = Client.open("redis://localhost")) {
 *     Limiter chat = client.limiter("rag:chat", LimiterOptions.ofLimit(4));
 *     try (Permit permit = chat.acquire(Request.ofMaxWait(Duration.ofSeconds(15)))) {
 *         // …
 *     }
 * }
 * }</pre>
 *
 * <h2>What runs where</h2>
 *
 * <p>Each {@link io.fairq.Client} has one daemon platform thread, which takes the library's news and wakes whoever waits. It
 * runs nobody else's code, but an {@link io.fairq.Observer}'s. Futures are completed, and listeners called, in the client's
 * {@linkplain io.fairq.ClientOptions#executor executor}. Threads that wait, virtual ones too, wait in Java and not in the
 * library: a virtual thread is not pinned, and an interrupt ends the wait at once.
 *
 * <p>Calls that are said to block do so in the library, for a round trip or two. From a platform thread they are made in that
 * thread; from a virtual thread in one of at most four daemon threads, while the virtual thread waits in Java.
 *
 * <p>{@code null} is refused with {@link java.lang.NullPointerException}, other arguments that mean nothing with
 * {@link io.fairq.InvalidException}. Durations are rounded up to milliseconds.
 */
package io.fairq;
